#include "checkpoints/manifest.h"

#include <set>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/digest.h"
#include "base/error.h"
#include "base/text.h"
#include "checkpoints/json_fields.h"
#include "checkpoints/layout.h"
#include "checkpoints/state_digest.h"
#include "checkpoints/tensor_shape.h"

namespace assay::checkpoints {
namespace {

constexpr std::string_view kFormatName = "assay-checkpoint";  // part of the format
// The manifest ends with exactly these around its digest, which is taken over all before them.
constexpr std::string_view kDigestStart = ",\n \"digest\": \"";
constexpr std::string_view kDigestEnd = "\"\n}\n";
constexpr size_t kSha256Digits = 64;
constexpr size_t kXxh3Digits = 32;

bool is_hex(std::string_view text, size_t digits) {
  return text.size() == digits &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

nlohmann::ordered_json tensor_to_json(const TensorChecksum& tensor) {
  nlohmann::ordered_json json;
  json["name"] = tensor.name;
  json["dtype"] = tensor.dtype;
  json["shape"] = tensor.shape;
  json["bytes"] = tensor.byte_count;
  json["xxh3"] = tensor.xxh3;
  return json;
}

nlohmann::ordered_json file_to_json(const WrittenFile& file) {
  nlohmann::ordered_json json;
  json["name"] = file.name;
  json["bytes"] = file.bytes;
  json["xxh3"] = file.xxh3;
  json["tensors"] = nlohmann::ordered_json::array();
  for (const TensorChecksum& tensor : file.tensors)
    json["tensors"].push_back(tensor_to_json(tensor));
  return json;
}

std::string checksum_field(JsonFields& fields, const std::string& key, size_t digits) {
  std::string text = fields.text(key);
  if (!is_hex(text, digits)) {
    fields.refuse(key, cat("is ", quoted(text), ", must be ", digits, " lower-case hex digits"));
  }
  return text;
}

TensorChecksum tensor_from_json(const nlohmann::json& json, const std::string& origin,
                                const std::string& place) {
  JsonFields fields(json, origin, place);
  TensorChecksum tensor;
  tensor.name = fields.text("name");
  const std::string problem = tensor_name_problem(tensor.name);
  if (!problem.empty()) fields.refuse("name", cat("is of a tensor that ", problem));
  tensor.dtype = fields.text("dtype");
  tensor.shape = fields.shape("shape");
  tensor.byte_count = fields.size("bytes");
  if (tensor_bytes(tensor.dtype, tensor.shape) != tensor.byte_count) {
    fields.refuse("bytes", cat("is ", tensor.byte_count, ", not what ", quoted(tensor.dtype), " ",
                               shape_text(tensor.shape), " has"));
  }
  tensor.xxh3 = checksum_field(fields, "xxh3", kXxh3Digits);
  fields.finish();
  return tensor;
}

// Names in a manifest lead to files that are read: they may only lie in the folder itself.
void check_file_name(const JsonFields& fields, const std::string& name) {
  const std::string problem = file_name_problem(name);
  if (!problem.empty()) fields.refuse("name", cat("is ", quoted(name), ", which ", problem));
  if (name == kManifestFile) fields.refuse("name", "is the manifest itself");
}

WrittenFile file_from_json(const nlohmann::json& json, const std::string& origin,
                           const std::string& place) {
  JsonFields fields(json, origin, place);
  WrittenFile file;
  file.name = fields.text("name");
  check_file_name(fields, file.name);
  file.bytes = fields.size("bytes");
  file.xxh3 = checksum_field(fields, "xxh3", kXxh3Digits);
  std::set<std::string> names;
  for (const nlohmann::json& entry : fields.array("tensors")) {
    const std::string where = cat(place, "tensors[", file.tensors.size(), "].");
    file.tensors.push_back(tensor_from_json(entry, origin, where));
    if (!names.insert(file.tensors.back().name).second) {
      fields.refuse("tensors", cat("names ", quoted(file.tensors.back().name), " twice"));
    }
  }
  fields.finish();
  return file;
}

std::map<std::string, std::string> text_map(JsonFields& fields, const std::string& key,
                                            const std::string& origin) {
  const nlohmann::json& object = fields.value(key);
  JsonFields entries(object, origin, key + ".");
  std::map<std::string, std::string> texts;
  for (const auto& [name, unused] : object.items()) texts[name] = entries.text(name);
  return texts;
}

void check_state_digests(const JsonFields& fields, const Manifest& manifest) {
  for (const std::string_view name : state_component_names()) {
    const auto found = manifest.state_components.find(std::string(name));
    if (found == manifest.state_components.end()) {
      fields.refuse("state_components", cat("lacks ", quoted(name)));
    }
    if (!is_hex(found->second, kSha256Digits)) {
      fields.refuse(cat("state_components.", name), "must be 64 lower-case hex digits");
    }
  }
  if (manifest.state_components.size() != state_component_names().size()) {
    fields.refuse("state_components", "names a component that does not exist");
  }
  if (total_digest(manifest.state_components) != manifest.state_digest) {
    fields.refuse("state_digest", "does not follow from state_components");
  }
}

// Any changed byte is found here, before the JSON is looked at.
void check_digest(std::string_view text, const std::string& origin) {
  const size_t tail = kDigestStart.size() + kSha256Digits + kDigestEnd.size();
  const bool is_shaped = text.size() > tail && text.ends_with(kDigestEnd) &&
                         text.substr(text.size() - tail, kDigestStart.size()) == kDigestStart;
  if (!is_shaped) {
    throw CheckpointError(cat(origin, " has ", text.size(),
                              " bytes and does not end with its digest: "
                              "cut off or not a manifest. Fix: resume from another checkpoint"));
  }
  const std::string_view body = text.substr(0, text.size() - tail);
  const std::string_view stored = text.substr(body.size() + kDigestStart.size(), kSha256Digits);
  const std::string found = sha256_hex(body);
  if (stored == found) return;
  throw CheckpointError(cat(origin, " has the digest ", found, ", but says ", quoted(stored),
                            ": its bytes were changed. Fix: resume from another checkpoint"));
}

void check_version(JsonFields& fields, const std::string& origin) {
  const std::string format = fields.text("format");
  if (format != kFormatName) {
    fields.refuse("format", cat("is ", quoted(format), ", must be ", quoted(kFormatName)));
  }
  const int64_t version = fields.count("format_version");
  if (version == kFormatVersion) return;
  throw CheckpointError(cat(origin, " has format version ", version, ", this program reads ",
                            kFormatVersion, ". Fix: use the version of assay that wrote it"));
}

}  // namespace

std::string manifest_to_json(const Manifest& manifest) {
  nlohmann::ordered_json json;
  json["format"] = kFormatName;
  json["format_version"] = manifest.format_version;
  json["step"] = manifest.step;
  json["world_size"] = manifest.world_size;
  json["run_id"] = manifest.run_id;
  json["created_utc"] = manifest.created_utc;
  json["config_digest"] = manifest.config_digest;
  json["data_digest"] = manifest.data_digest;
  json["state_digest"] = manifest.state_digest;
  json["state_components"] = manifest.state_components;
  json["versions"] = manifest.versions;
  json["files"] = nlohmann::ordered_json::array();
  for (const WrittenFile& file : manifest.files) json["files"].push_back(file_to_json(file));
  std::string text = dump_json(json, "manifest.json");
  text.resize(text.size() - 3);  // "\n}\n": the digest comes last
  const std::string digest = sha256_hex(text);
  return cat(text, kDigestStart, digest, kDigestEnd);
}

Manifest manifest_from_json(std::string_view text, const std::string& origin) {
  check_digest(text, origin);
  const nlohmann::json json = parse_checkpoint_json(text, origin);
  JsonFields fields(json, origin);
  check_version(fields, origin);
  Manifest manifest;
  manifest.step = fields.count("step");
  manifest.world_size = fields.count("world_size");
  if (manifest.world_size < 1) fields.refuse("world_size", "is 0, must be at least 1");
  manifest.run_id = fields.text("run_id");
  manifest.created_utc = fields.text("created_utc");
  manifest.config_digest = fields.text("config_digest");
  manifest.data_digest = fields.text("data_digest");
  manifest.state_digest = checksum_field(fields, "state_digest", kSha256Digits);
  manifest.state_components = text_map(fields, "state_components", origin);
  check_state_digests(fields, manifest);
  manifest.versions = text_map(fields, "versions", origin);
  for (const nlohmann::json& entry : fields.array("files")) {
    const std::string place = cat("files[", manifest.files.size(), "].");
    WrittenFile file = file_from_json(entry, origin, place);
    if (!manifest.files.empty() && !(manifest.files.back().name < file.name)) {
      fields.refuse("files",
                    cat("has ", quoted(file.name), " after ", quoted(manifest.files.back().name),
                        ", must be sorted, each once"));
    }
    manifest.files.push_back(std::move(file));
  }
  checksum_field(fields, "digest", kSha256Digits);
  fields.finish();
  return manifest;
}

}  // namespace assay::checkpoints
