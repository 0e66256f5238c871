// CONFIG.json: flat names as in the options, and sections.
#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/text.h"
#include "trainer/config/layer.h"
#include "trainer/config/values.h"

namespace assay::config {
namespace {

constexpr uint64_t kMaxConfigBytes = uint64_t{16} << 20;  // far above any real configuration
constexpr std::string_view kDigestKey = "config_digest";  // written by runs, no setting

[[noreturn]] void fail(const std::string& path, std::string_view problem) {
  throw ConfigError(cat("cannot use CONFIG.json ", quoted(path), ": ", problem));
}

std::string read_config_text(const std::string& path) {
  if (path.empty()) fail(path, "the path is empty. Fix: name a file, or leave the word out");
  if (!path_exists(path)) {
    fail(path,
         cat("there is no such file. Fix: check the path (options start with --, settings are "
             "key=value; assay train --help)"));
  }
  if (is_directory(path)) {
    fail(path, cat("it is a folder. Fix: name the file, e.g. ", join_path(path, "config.json")));
  }
  if (!is_regular_file(path)) fail(path, "it is not a regular file. Fix: copy it to one");
  std::string text;
  try {
    text = read_file(path, kMaxConfigBytes);
  } catch (const FileError& error) {  // a file system's error becomes a usage error, with context
    fail(path, cat(error.what(), ". Fix: check its permissions and size (at most 16 MB)"));
  }
  std::string_view content = text;
  if (content.starts_with("\xEF\xBB\xBF")) content.remove_prefix(3);
  if (trimmed(content).empty()) {
    fail(path, "it is empty, expected a JSON object. Fix: write {} to use the defaults");
  }
  const bool is_utf16 = content.starts_with("\xFF\xFE") || content.starts_with("\xFE\xFF");
  if (const size_t zero = content.find('\0'); zero != std::string_view::npos && !is_utf16) {
    fail(path, cat("it is not text (zero byte at offset ", zero, "), expected a JSON object"));
  }
  return text;
}

std::string joined_key(std::string_view section, std::string_view key) {
  return section.empty() ? std::string(key) : cat(section, ".", key);
}

}  // namespace

void set_from_object(Layer& layer, const nlohmann::json& object, const std::string& origin,
                     std::string_view section) {
  for (const auto& [key, value] : object.items()) {
    const std::string name = joined_key(section, key);
    const std::string normal = normalized_name(name);
    if (section.empty() && value.is_object() && is_section(normal)) {
      set_from_object(layer, value, origin, normal);
      continue;
    }
    const Field* field = find_field(normal);
    const bool is_usual = field != nullptr && field->key == name;
    const Place place{.text = is_usual ? origin : cat(origin, ", key ", quoted(name))};
    if (field == nullptr && section.empty() && is_section(normal)) {
      layer.report(cat(normal, " is ", shown_json(value), ", must be an object (", origin,
                       "). Fix: write {\"", normal, "\": {...}}"));
    } else if (field == nullptr && find_switch(normal) == nullptr) {
      // The message names the key itself.
      layer.report_unknown(name, {.text = origin});
    } else {
      layer.set_json(name, value, place);
    }
  }
}

void set_from_file(Layer& layer, const std::string& path) {
  const std::string text = read_config_text(path);
  nlohmann::json json = parse_json(text, path, {.allow_comments = true});
  if (!json.is_object()) {
    fail(path, cat("it holds ", shown_json(json),
                   ", expected a JSON object. Fix: write {\"key\": "
                   "value, ...}"));
  }
  json.erase(std::string(kDigestKey));
  set_from_object(layer, json, path);
}

}  // namespace assay::config
