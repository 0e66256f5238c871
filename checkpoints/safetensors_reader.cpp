// Reading half of the safetensors container. The file may come from anybody: nothing is used before
// it was checked, and every sum is made so that it cannot wrap.
#include <algorithm>
#include <cstring>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "checkpoints/json_fields.h"
#include "checkpoints/safetensors.h"
#include "checkpoints/tensor_shape.h"

namespace assay::checkpoints {
namespace {

constexpr uint64_t kPrefixBytes = 8;
constexpr std::string_view kFix =
    ". Fix: use another copy of the file; this one is damaged or of another kind";

struct Span {  // a tensor's bytes, counted from the start of the data
  uint64_t begin = 0;
  uint64_t end = 0;
};

MappedFile map_file(const std::string& path) {
  try {
    return MappedFile(path);
  } catch (const FileError& error) {
    throw CheckpointError(cat(error.what(), ". Fix: give a readable .safetensors file"));
  }
}

// The path as it may stand within quotes of a command that people paste into a shell.
std::string pasteable(const std::string& path) {
  const bool is_plain = path.find_first_not_of(
                            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                            "0123456789._-+=@:,/ ") == std::string::npos;
  return is_plain ? path : "FILE";
}

// What a file that is no safetensors file is instead; empty if nothing is recognised.
std::string foreign_kind(const std::string& path, const unsigned char* data, uint64_t size) {
  const auto starts_with = [&](std::string_view magic) {
    return size >= magic.size() && std::memcmp(data, magic.data(), magic.size()) == 0;
  };
  const bool is_zip = starts_with("PK\x03\x04") || starts_with("PK\x05\x06");
  const bool is_pickle = size >= 2 && data[0] == 0x80 && data[1] >= 1 && data[1] <= 5;
  if (is_zip || is_pickle) {
    return cat(
        "a ", is_zip ? "zip archive, as torch.save writes it" : "Python pickle",
        ", which can run code when it is loaded and is never read here. Fix: convert it once: "
        "python -c \"import torch, safetensors.torch as s; "
        "s.save_file({k: v.contiguous() for k, v in torch.load('",
        pasteable(path), "', weights_only=True).items()}, 'model.safetensors')\"");
  }
  if (starts_with("\x1f\x8b")) return "a gzip file. Fix: unpack it with gzip -d";
  if (starts_with("version https://git-lfs")) {
    return "a Git LFS pointer, not the file itself. Fix: fetch it with git lfs pull";
  }
  return "";
}

[[noreturn]] void refuse_container(const std::string& path, const MappedFile& map,
                                   const std::string& problem) {
  const std::string foreign = foreign_kind(path, map.data(), map.size());
  if (!foreign.empty()) throw CheckpointError(cat(path, " is ", foreign));
  throw CheckpointError(cat(path, ": ", problem, kFix));
}

uint64_t little_endian(const unsigned char* bytes) {
  uint64_t value = 0;
  for (int index = 7; index >= 0; --index) value = value << 8 | bytes[index];
  return value;
}

// The header's text; all that follows it in the file is data.
std::string_view header_of(const std::string& path, const MappedFile& map) {
  if (map.size() < kPrefixBytes) {
    refuse_container(path, map,
                     cat("has ", map.size(), " bytes, a safetensors file has at least 8"));
  }
  const uint64_t length = little_endian(map.data());
  const uint64_t room = map.size() - kPrefixBytes;
  if (length > kMaxHeaderBytes) {
    refuse_container(
        path, map,
        cat("says its header has ", length, " bytes, at most ", kMaxHeaderBytes, " are allowed"));
  }
  if (length > room) {
    refuse_container(
        path, map,
        cat("says its header has ", length, " bytes, but only ", room, " follow in the file"));
  }
  if (length < 2 || map.data()[kPrefixBytes] != '{') {
    refuse_container(path, map, "its header does not start with {");
  }
  const void* text = map.data() + kPrefixBytes;
  return {static_cast<const char*>(text), static_cast<size_t>(length)};
}

Span offsets_of(JsonFields& fields) {
  const nlohmann::json& pair = fields.array("data_offsets");
  const auto is_offset = [](const nlohmann::json& value) { return value.is_number_unsigned(); };
  if (pair.size() != 2 || !is_offset(pair[0]) || !is_offset(pair[1])) {
    fields.refuse("data_offsets", "must be two integers >= 0, begin and end");
  }
  const Span span{.begin = pair[0].get<uint64_t>(), .end = pair[1].get<uint64_t>()};
  if (span.end < span.begin) {
    fields.refuse("data_offsets", cat("ends at ", span.end, " before it begins at ", span.begin));
  }
  return span;
}

std::pair<Span, TensorView> read_entry(const std::string& path, const std::string& name,
                                       const nlohmann::json& entry) {
  const std::string problem = tensor_name_problem(name);
  if (!problem.empty())
    throw CheckpointError(cat(path, ": tensor ", quoted(name), " ", problem, kFix));
  JsonFields fields(entry, path, cat(name, "."));
  TensorView tensor;
  tensor.name = name;
  tensor.dtype = fields.text("dtype");
  if (dtype_bytes(tensor.dtype) == 0) {
    fields.refuse("dtype", cat("is ", quoted(tensor.dtype),
                               ", known are F64 F32 F16 BF16 I64 I32 I16 I8 U8 BOOL"));
  }
  tensor.shape = fields.shape("shape");
  const std::optional<uint64_t> bytes = tensor_bytes(tensor.dtype, tensor.shape);
  if (!bytes) fields.refuse("shape", cat("is ", shape_text(tensor.shape), ", too large to count"));
  const Span span = offsets_of(fields);
  fields.finish();
  if (span.end - span.begin != *bytes) {
    fields.refuse("data_offsets", cat("spans ", span.end - span.begin, " bytes, but ", tensor.dtype,
                                      " ", shape_text(tensor.shape), " has ", *bytes));
  }
  tensor.byte_count = *bytes;
  return {span, std::move(tensor)};
}

std::map<std::string, std::string> read_metadata(const std::string& path,
                                                 const nlohmann::json& object) {
  JsonFields fields(object, path, "__metadata__.");
  std::map<std::string, std::string> metadata;
  for (const auto& [key, unused] : object.items()) metadata[key] = fields.text(key);
  return metadata;
}

// LibTorch reads any other byte of a bool as undefined behaviour.
void check_bools(const std::string& path, const TensorView& tensor) {
  if (tensor.dtype != "BOOL") return;
  const auto* bytes = static_cast<const unsigned char*>(tensor.bytes);
  const auto* end = bytes + tensor.byte_count;
  const auto* bad = std::find_if(bytes, end, [](unsigned char byte) { return byte > 1; });
  if (bad == end) return;
  throw CheckpointError(cat(path, ": tensor ", quoted(tensor.name), " of BOOL holds the byte ",
                            int{*bad}, " at element ", bad - bytes, ", must be 0 or 1", kFix));
}

// Sorts by place in the file and checks that the tensors cover the data exactly, without overlap,
// hole or rest; then points them at their bytes.
std::vector<TensorView> place_tensors(const std::string& path,
                                      std::vector<std::pair<Span, TensorView>> entries,
                                      const unsigned char* data, uint64_t data_bytes) {
  const auto before = [](const auto& left, const auto& right) {
    return std::pair(left.first.begin, left.first.end) <
           std::pair(right.first.begin, right.first.end);
  };
  std::stable_sort(entries.begin(), entries.end(), before);
  std::vector<TensorView> tensors;
  uint64_t reached = 0;
  for (auto& [span, tensor] : entries) {
    const std::string what =
        cat(path, ": tensor ", quoted(tensor.name), " lies at [", span.begin, ", ", span.end, ")");
    if (span.end > data_bytes) {
      throw CheckpointError(
          cat(what, ", past the end of the data of ", data_bytes, " bytes", kFix));
    }
    if (span.begin != reached) {
      throw CheckpointError(cat(what, ", must begin at ", reached, " where the one before it ends",
                                span.begin < reached ? " (overlap)" : " (hole)", kFix));
    }
    tensor.bytes = data + span.begin;
    check_bools(path, tensor);
    reached = span.end;
    tensors.push_back(std::move(tensor));
  }
  if (reached != data_bytes) {
    throw CheckpointError(
        cat(path, ": ", data_bytes - reached, " bytes after the last tensor belong to none", kFix));
  }
  return tensors;
}

}  // namespace

SafetensorsFile::SafetensorsFile(const std::string& path) : path_(path), map_(map_file(path)) {
  const std::string_view text = header_of(path, map_);
  const nlohmann::json header = parse_checkpoint_json(text, cat(path, " (header)"));
  if (!header.is_object()) refuse_container(path, map_, "its header is not a JSON object");
  std::vector<std::pair<Span, TensorView>> entries;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") {
      metadata_ = read_metadata(path, entry);
    } else {
      entries.push_back(read_entry(path, name, entry));
    }
  }
  const uint64_t data_start = kPrefixBytes + text.size();
  tensors_ =
      place_tensors(path, std::move(entries), map_.data() + data_start, map_.size() - data_start);
}

const TensorView* SafetensorsFile::find(std::string_view name) const {
  for (const TensorView& tensor : tensors_) {
    if (tensor.name == name) return &tensor;
  }
  return nullptr;
}

}  // namespace assay::checkpoints
