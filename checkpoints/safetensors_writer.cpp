// Writing half of the safetensors container.
#include <algorithm>
#include <set>

#include <nlohmann/json.hpp>

#include "base/digest.h"
#include "base/error.h"
#include "base/text.h"
#include "checkpoints/safetensors.h"
#include "checkpoints/tensor_shape.h"

namespace assay::checkpoints {
namespace {

// Large enough to keep a disk busy, small enough to stay in the last-level cache between the two
// checksums and the write.
constexpr uint64_t kChunkBytes = uint64_t{4} << 20;
constexpr size_t kAlignment = 8;

void check_tensor(const TensorView& tensor, std::set<std::string>& names) {
  const std::string problem = tensor_name_problem(tensor.name);
  if (!problem.empty()) throw InternalError(cat("tensor ", quoted(tensor.name), " ", problem));
  if (!names.insert(tensor.name).second) {
    throw InternalError(cat("tensor ", quoted(tensor.name), " is given twice"));
  }
  const std::optional<uint64_t> expected = tensor_bytes(tensor.dtype, tensor.shape);
  if (!expected || *expected != tensor.byte_count) {
    throw InternalError(cat("tensor ", quoted(tensor.name), " of ", tensor.dtype, " ",
                            shape_text(tensor.shape), " has ", tensor.byte_count, " bytes, not ",
                            expected ? cat(*expected) : "a known number"));
  }
  if (tensor.byte_count > 0 && tensor.bytes == nullptr) {
    throw InternalError(cat("tensor ", quoted(tensor.name), " has no bytes"));
  }
}

// JSON header, padded with spaces so that the data starts 8-byte aligned.
std::string header_text(const std::vector<TensorView>& tensors,
                        const std::map<std::string, std::string>& metadata,
                        const std::string& path) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  std::map<std::string, std::string> notes = metadata;
  notes.emplace("format", "pt");  // what Python's loaders ask for
  header["__metadata__"] = notes;
  uint64_t offset = 0;
  for (const TensorView& tensor : tensors) {
    nlohmann::ordered_json entry;
    entry["dtype"] = tensor.dtype;
    entry["shape"] = tensor.shape;
    entry["data_offsets"] = {offset, offset + tensor.byte_count};
    header[tensor.name] = std::move(entry);
    offset += tensor.byte_count;
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const nlohmann::json::type_error& error) {
    throw InternalError(cat("metadata of ", path, " is not UTF-8: ", error.what()));
  }
  text.append((kAlignment - text.size() % kAlignment) % kAlignment, ' ');
  if (text.size() > kMaxHeaderBytes) {
    throw InternalError(cat("header of ", path, " has ", text.size(), " bytes, at most ",
                            kMaxHeaderBytes, " are allowed"));
  }
  return text;
}

std::string length_prefix(uint64_t length) {
  std::string prefix;
  for (int shift = 0; shift < 64; shift += 8) {
    prefix.push_back(static_cast<char>(static_cast<unsigned char>(length >> shift)));
  }
  return prefix;
}

}  // namespace

WrittenFile write_safetensors(const std::string& path, const std::vector<TensorView>& tensors,
                              const std::map<std::string, std::string>& metadata,
                              std::string_view fault_site) {
  std::set<std::string> names;
  for (const TensorView& tensor : tensors) check_tensor(tensor, names);
  const std::string header = header_text(tensors, metadata, path);

  WrittenFile written{.name = file_name(path), .bytes = 0, .xxh3 = "", .tensors = {}};
  FileWriter writer(path, fault_site);
  Xxh3 file_hash;
  const auto put = [&](const void* bytes, size_t count) {
    file_hash.update(bytes, count);
    writer.write(bytes, count);
    written.bytes += count;
  };
  const std::string start = length_prefix(header.size()) + header;
  put(start.data(), start.size());
  for (const TensorView& tensor : tensors) {
    Xxh3 tensor_hash;
    const auto* bytes = static_cast<const unsigned char*>(tensor.bytes);
    for (uint64_t done = 0; done < tensor.byte_count;) {
      const uint64_t count = std::min(kChunkBytes, tensor.byte_count - done);
      tensor_hash.update(bytes + done, count);
      put(bytes + done, count);
      done += count;
    }
    written.tensors.push_back({.name = tensor.name,
                               .dtype = tensor.dtype,
                               .shape = tensor.shape,
                               .byte_count = tensor.byte_count,
                               .xxh3 = tensor_hash.hex()});
  }
  writer.sync();
  writer.close();
  written.xxh3 = file_hash.hex();
  return written;
}

}  // namespace assay::checkpoints
