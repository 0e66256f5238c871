#include "data/token_manifest.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/text.h"

namespace assay::data {
namespace {

constexpr const char* kFormat = "assay tokens 1";

nlohmann::ordered_json file_json(const SourceFile& file) {
  return {{"path", escaped(file.path)}, {"bytes", file.bytes}, {"sha256", file.sha256}};
}

[[noreturn]] void refuse(const std::string& path, const std::string& what) {
  throw DataError(cat("manifest ", path, ": ", what, ". Fix: tokenize the text again"));
}

struct Expected {
  std::string file;
  uint64_t bytes = 0;
  std::string sha256;
};

std::vector<Expected> parse_manifest(const std::string& path) {
  try {
    const nlohmann::json json = parse_json(read_file(path, uint64_t{1} << 26), path);
    if (json.at("format") != kFormat) refuse(path, "is of another format or version");
    std::vector<Expected> files;
    for (const nlohmann::json& split : json.at("splits")) {
      const auto name = split.at("file").get<std::string>();
      if (name != file_name(name)) refuse(path, cat(quoted(name), " is not a name in its folder"));
      files.push_back(
          {name, split.at("bytes").get<uint64_t>(), split.at("sha256").get<std::string>()});
    }
    return files;
  } catch (const nlohmann::json::exception& error) {
    refuse(path, cat("a key is missing or of another type (", error.what(), ")"));
  } catch (const ConfigError& error) {
    refuse(path, error.what());
  } catch (const FileError& error) {
    refuse(path, error.what());
  }
}

}  // namespace

std::string token_manifest_text(const Tokenizer& tokenizer, const TokenizeRequest& request,
                                const TokenizeResult& result) {
  nlohmann::ordered_json json;
  json["format"] = kFormat;
  json["tokenizer"] = tokenizer.name();
  json["vocabulary_size"] = tokenizer.vocabulary_size();
  json["vocabulary_sha256"] = tokenizer.vocabulary_hashes();
  json["container"] = request.format == TokenFormat::kLlmC ? "llmc" : "raw";
  json["token_bits"] = 16;
  json["end_of_text"] = request.has_end_of_text ? tokenizer.end_of_text() : -1;
  json["invalid_utf8"] = request.invalid_utf8 == InvalidUtf8::kFail ? "fail" : "replace";
  json["sources"] = nlohmann::ordered_json::array();
  for (const SourceFile& source : result.sources) json["sources"].push_back(file_json(source));
  json["splits"] = nlohmann::ordered_json::array();
  for (const TokenizedSplit& split : result.splits) {
    json["splits"].push_back({{"name", split.name},
                              {"file", file_name(split.file.path)},
                              {"bytes", split.file.bytes},
                              {"sha256", split.file.sha256},
                              {"tokens", split.tokens},
                              {"text_bytes", split.text_bytes}});
  }
  return json.dump(2) + "\n";
}

int64_t check_token_manifest(const std::string& folder, std::span<const SourceFile> files) {
  const std::string path = join_path(folder, kTokenManifestName);
  if (!is_regular_file(path)) return 0;
  int64_t compared = 0;
  for (const Expected& expected : parse_manifest(path)) {
    const std::string wanted = join_path(folder, expected.file);
    const auto found = std::find_if(files.begin(), files.end(), [&](const SourceFile& file) {
      return file_name(file.path) == expected.file && parent_path(file.path) == folder;
    });
    if (found == files.end()) refuse(path, cat("names ", wanted, ", which is not there"));
    if (found->bytes != expected.bytes || found->sha256 != expected.sha256) {
      throw DataError(cat(wanted, " has ", found->bytes, " bytes and SHA-256 ", found->sha256,
                          ", its manifest says ", expected.bytes, " and ", expected.sha256,
                          ". Fix: copy it again, or tokenize the text again"));
    }
    ++compared;
  }
  return compared;
}

}  // namespace assay::data
