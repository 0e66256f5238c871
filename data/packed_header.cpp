// The JSON header of a packed shard.
#include <array>
#include <cmath>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "data/packed_file.h"

namespace assay::data {
namespace {

constexpr int64_t kMostBytesOfASample = int64_t{1} << 31;
constexpr int64_t kMostTargets = int64_t{1} << 24;
constexpr int64_t kMostClasses = int64_t{1} << 24;
constexpr int64_t kMostSamples = int64_t{1} << 40;

[[noreturn]] void refuse(const std::string& path, const std::string& what) {
  throw DataError(cat("packed shard ", path, ": its header ", what,
                      ". Fix: pack the data again, or copy the file again"));
}

int64_t number_in(const nlohmann::json& json, const char* key, int64_t low, int64_t high,
                  const std::string& path) {
  const nlohmann::json& value = json.at(key);
  const bool is_whole = value.is_number_integer() || value.is_number_unsigned();
  const int64_t number = is_whole ? value.get<int64_t>() : low - 1;
  if (number >= low && number <= high) return number;
  refuse(path, cat("has ", key, " ", escaped(value.dump().substr(0, 40)), ", must be in [", low,
                   ", ", high, "]"));
}

std::string one_of(const nlohmann::json& json, const char* key,
                   std::span<const std::string_view> choices, const std::string& path) {
  const auto word = json.at(key).get<std::string>();
  if (std::find(choices.begin(), choices.end(), word) != choices.end()) return word;
  const std::vector<std::string> names(choices.begin(), choices.end());
  refuse(path, cat("has ", key, " ", quoted(word), ", must be one of ", join(names, ", ")));
}

nlohmann::ordered_json floats_json(const std::vector<float>& values) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const float value : values) json.push_back(hex_float(static_cast<double>(value)));
  return json;
}

std::vector<float> floats_of(const nlohmann::json& json, const char* key, size_t channels,
                             const std::string& path) {
  std::vector<float> values;
  for (const nlohmann::json& text : json.at(key)) {
    const std::optional<double> value = parse_hex_float(text.get<std::string>());
    if (!value || !std::isfinite(*value)) refuse(path, cat("has a ", key, " that is no number"));
    values.push_back(static_cast<float>(*value));
  }
  if (!values.empty() && values.size() != channels) {
    refuse(path, cat("has ", values.size(), " numbers in ", key, ", must be ", channels,
                     ", one a channel, or none"));
  }
  return values;
}

SampleSpec spec_of(const nlohmann::json& json, PackedContent content, const std::string& path) {
  constexpr auto kTypes = std::to_array<std::string_view>({"uint8", "int64"});
  constexpr size_t kMostDimensions = 4;
  SampleSpec spec;
  const bool is_uint8 = one_of(json, "feature_type", kTypes, path) == "uint8";
  spec.feature_type = is_uint8 ? FeatureType::kUint8 : FeatureType::kInt64;
  int64_t bytes = is_uint8 ? 1 : static_cast<int64_t>(sizeof(int64_t));
  for (const nlohmann::json& size : json.at("feature_shape")) {
    const int64_t length = size.is_number_unsigned() ? size.get<int64_t>() : 0;
    if (length < 1 || length > kMostBytesOfASample / bytes) {
      refuse(path, cat("has a feature_shape that is no shape of at most ", kMostBytesOfASample,
                       " bytes"));
    }
    bytes *= length;
    spec.feature_shape.push_back(length);
  }
  const bool is_encoded = content == PackedContent::kEncoded;
  if (spec.feature_shape.empty() != is_encoded || spec.feature_shape.size() > kMostDimensions ||
      (is_encoded && !is_uint8)) {
    refuse(path, cat("has ", spec.feature_shape.size(), " dimensions in feature_shape, must be ",
                     is_encoded ? "none with image files" : "1 to 4"));
  }
  spec.targets_per_sample =
      number_in(json, "targets_per_sample", 1, is_encoded ? 1 : kMostTargets, path);
  spec.num_classes = number_in(json, "num_classes", 1, kMostClasses, path);
  const size_t channels = is_encoded ? 3 : static_cast<size_t>(spec.feature_shape[0]);
  spec.mean = floats_of(json, "mean", channels, path);
  spec.stddev = floats_of(json, "stddev", channels, path);
  return spec;
}

}  // namespace

std::string packed_header_json(const PackedHeader& header) {
  const SampleSpec& spec = header.spec;
  nlohmann::ordered_json json;
  json["source"] = header.source;
  json["source_digest"] = header.source_digest;
  json["split"] = header.split;
  json["shard"] = header.shard;
  json["num_shards"] = header.num_shards;
  json["first_sample"] = header.first_sample;
  json["num_samples"] = header.num_samples;
  json["content"] = header.content == PackedContent::kRaw ? "raw" : "encoded";
  json["feature_type"] = spec.feature_type == FeatureType::kUint8 ? "uint8" : "int64";
  json["feature_shape"] = spec.feature_shape;
  json["targets_per_sample"] = spec.targets_per_sample;
  json["num_classes"] = spec.num_classes;
  json["mean"] = floats_json(spec.mean);
  json["stddev"] = floats_json(spec.stddev);
  return json.dump();
}

PackedHeader parse_packed_header(std::string_view text, const std::string& path) {
  constexpr auto kSplits = std::to_array<std::string_view>({"train", "val"});
  constexpr auto kContents = std::to_array<std::string_view>({"raw", "encoded"});
  constexpr int64_t kMostShards = 1'000'000;
  try {
    const nlohmann::json json = parse_json(text, path);
    PackedHeader header;
    header.source = json.at("source").get<std::string>();
    header.source_digest = json.at("source_digest").get<std::string>();
    header.split = one_of(json, "split", kSplits, path);
    header.num_shards = number_in(json, "num_shards", 1, kMostShards, path);
    header.shard = number_in(json, "shard", 0, header.num_shards - 1, path);
    header.first_sample = number_in(json, "first_sample", 0, kMostSamples, path);
    header.num_samples = number_in(json, "num_samples", 1, kMostSamples, path);
    header.content = one_of(json, "content", kContents, path) == "raw" ? PackedContent::kRaw
                                                                       : PackedContent::kEncoded;
    header.spec = spec_of(json, header.content, path);
    return header;
  } catch (const nlohmann::json::exception& error) {
    refuse(path, cat("lacks a key or has one of another type (", escaped(error.what()), ")"));
  } catch (const ConfigError& error) {  // parse_json's word for text that is no JSON
    refuse(path, cat("is no JSON: ", error.what()));
  }
}

}  // namespace assay::data
