// The canonical text of a configuration, its digests, and what differs between two.
#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/digest.h"
#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "trainer/config/layer.h"
#include "trainer/config/model_sizes.h"
#include "trainer/config/values.h"

namespace assay::config {
namespace {

constexpr std::string_view kDigestKey = "config_digest";

// nlohmann::json keeps the members of an object sorted by name.
nlohmann::json sections_of(const RunConfig& config) {
  nlohmann::json json = nlohmann::json::object();
  for (const Field& field : fields()) {
    const std::string key(field.key);
    const size_t dot = key.find('.');
    nlohmann::json value = value_to_json(field.get(config));
    if (dot == std::string::npos) {
      json[key] = std::move(value);
    } else {
      json[key.substr(0, dot)][key.substr(dot + 1)] = std::move(value);
    }
  }
  return json;
}

}  // namespace

std::string config_to_json(const RunConfig& config) { return sections_of(config).dump(2) + "\n"; }

std::string config_file_text(const RunConfig& config) {
  nlohmann::json json = sections_of(config);
  json[std::string(kDigestKey)] = sha256_hex(config_to_json(config));
  return json.dump(2) + "\n";
}

RunConfig config_from_json(std::string_view text, const std::string& origin) {
  nlohmann::json json = parse_json(text, origin);
  if (!json.is_object()) {
    throw ConfigError(cat("the configuration in ", origin, " is ", shown_json(json),
                          ", expected a JSON object. Fix: restore the file as the run wrote it"));
  }
  const nlohmann::json digest = json.value(std::string(kDigestKey), nlohmann::json());
  json.erase(std::string(kDigestKey));
  Violations violations;
  Layer layer(violations);
  set_from_object(layer, json, origin);
  RunConfig config;
  std::set<std::string> given;
  layer.apply(&config, &given);
  if (!violations.lines.empty()) throw ConfigError(join(violations.lines, "\n"));
  const std::string actual = sha256_hex(config_to_json(config));
  if (!digest.is_null() && digest != actual) {
    throw ConfigError(cat("the configuration in ", origin, " does not match its ", kDigestKey,
                          ": got ", actual, ", expected ", shown_json(digest),
                          ". Fix: restore the file as the run wrote it"));
  }
  return config;
}

std::string identity_digest(const RunConfig& config) {
  const RunConfig effective = with_effective_values(config);
  nlohmann::json json = nlohmann::json::object();
  for (const Field& field : fields()) {
    if (field.role == FieldRole::kIdentity) {
      json[std::string(field.key)] = value_to_json(field.get(effective));
    }
  }
  return sha256_hex(json.dump());
}

std::vector<FieldDifference> config_differences(const RunConfig& before, const RunConfig& after) {
  const RunConfig effective_before = with_effective_values(before);
  const RunConfig effective_after = with_effective_values(after);
  std::vector<FieldDifference> differences;
  for (const Field& field : fields()) {
    const Value old_value = field.get(effective_before);
    const Value new_value = field.get(effective_after);
    if (old_value == new_value) continue;
    differences.push_back({.key = std::string(field.key),
                           .before = value_text(old_value),
                           .after = value_text(new_value),
                           .role = field.role});
  }
  std::sort(differences.begin(), differences.end(),
            [](const FieldDifference& a, const FieldDifference& b) { return a.key < b.key; });
  return differences;
}

std::optional<std::vector<int64_t>> milestones_of(const ScheduleConfig& schedule) {
  std::vector<int64_t> milestones;
  if (schedule.milestones.empty()) return milestones;
  for (const std::string& word : split(schedule.milestones, ',')) {
    const std::optional<int64_t> milestone = parse_int64(trimmed(word));
    const int64_t previous = milestones.empty() ? 0 : milestones.back();
    if (!milestone || *milestone <= previous) return std::nullopt;
    milestones.push_back(*milestone);
  }
  return milestones;
}

std::vector<std::string> allowed_changes(const RunConfig& config) {
  std::vector<std::string> keys;
  for (const std::string& word : split(config.allow_config_change, ',')) {
    const Field* field = find_field(normalized_name(trimmed(word)));
    if (field != nullptr) keys.emplace_back(field->key);
  }
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

}  // namespace assay::config
