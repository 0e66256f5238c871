#include "checkpoints/json_fields.h"

#include <cmath>
#include <cstring>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"

namespace assay::checkpoints {
namespace {

// What a value is, short enough for a message.
std::string shown(const nlohmann::json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return cat("an array of ", value.size());
  const auto replace = nlohmann::json::error_handler_t::replace;
  std::string text = value.dump(-1, ' ', true, replace);
  if (text.size() > 80) text = cat(text.substr(0, 77), "...");
  return text;
}

bool same_bits(double left, double right) { return std::memcmp(&left, &right, sizeof left) == 0; }

}  // namespace

nlohmann::json parse_checkpoint_json(std::string_view text, const std::string& origin) {
  try {
    return parse_json(text, origin);
  } catch (const ConfigError& error) {
    // base/json speaks of configuration; here the same fault is a broken checkpoint (exit 4).
    throw CheckpointError(cat(error.what(), ". Fix: use another copy; this one is damaged"));
  }
}

JsonFields::JsonFields(const nlohmann::json& object, std::string origin, std::string place)
    : object_(&object), origin_(std::move(origin)), place_(std::move(place)) {
  if (object.is_object()) return;
  const std::string where = place_.empty() ? "the whole text" : cat("\"", place_, "\"");
  throw CheckpointError(cat(origin_, ": ", where, " is ", shown(object),
                            ", must be an object. Fix: use another checkpoint"));
}

void JsonFields::refuse(const std::string& key, std::string_view problem) const {
  throw CheckpointError(cat(origin_, ": field ", quoted(cat(place_, key)), " ", problem,
                            ". Fix: use another checkpoint; this file was not written by this "
                            "version or was changed"));
}

const nlohmann::json& JsonFields::value(const std::string& key) {
  const auto found = object_->find(key);
  if (found == object_->end()) refuse(key, "is missing");
  asked_.insert(key);
  return *found;
}

int64_t JsonFields::count(const std::string& key) {
  const nlohmann::json& found = value(key);
  const bool fits = found.is_number_integer() &&
                    (!found.is_number_unsigned() || found.get<uint64_t>() <= uint64_t{INT64_MAX});
  if (!fits || found.get<int64_t>() < 0) {
    refuse(key, cat("is ", shown(found), ", must be an integer from 0 to 2^63-1"));
  }
  return found.get<int64_t>();
}

uint64_t JsonFields::size(const std::string& key) {
  const nlohmann::json& found = value(key);
  if (!found.is_number_unsigned()) {
    refuse(key, cat("is ", shown(found), ", must be an integer from 0 to 2^64-1"));
  }
  return found.get<uint64_t>();
}

std::string JsonFields::text(const std::string& key) {
  const nlohmann::json& found = value(key);
  if (!found.is_string()) refuse(key, cat("is ", shown(found), ", must be a text"));
  return found.get<std::string>();
}

double JsonFields::exact_number(const std::string& key) {
  const nlohmann::json& number = value(key);
  const std::string hex = text(key + "_hex");
  const std::optional<double> exact = parse_hex_float(hex);
  if (!exact) refuse(key + "_hex", cat("is ", quoted(hex), ", must be a hexadecimal number"));
  if (number.is_null()) {
    if (std::isfinite(*exact)) refuse(key, cat("is null, but ", key, "_hex says ", hex));
    return *exact;
  }
  if (!number.is_number()) refuse(key, cat("is ", shown(number), ", must be a number or null"));
  if (!same_bits(number.get<double>(), *exact)) {
    refuse(key, cat("is ", shown(number), ", but ", key, "_hex says ", hex));
  }
  return *exact;
}

std::vector<int64_t> JsonFields::shape(const std::string& key) {
  std::vector<int64_t> dimensions;
  for (const nlohmann::json& dimension : array(key)) {
    if (!dimension.is_number_unsigned() || dimension.get<uint64_t>() > uint64_t{INT64_MAX}) {
      refuse(key,
             cat("holds ", shown(dimension), ", every entry must be an integer from 0 to 2^63-1"));
    }
    dimensions.push_back(dimension.get<int64_t>());
  }
  return dimensions;
}

const nlohmann::json& JsonFields::array(const std::string& key) {
  const nlohmann::json& found = value(key);
  if (!found.is_array()) refuse(key, cat("is ", shown(found), ", must be an array"));
  return found;
}

void JsonFields::finish() const {
  for (const auto& [key, unused] : object_->items()) {
    if (asked_.count(key) == 0) refuse(key, "is unknown");
  }
}

void put_exact_number(nlohmann::ordered_json& object, const std::string& key, double value) {
  if (std::isfinite(value)) {
    object[key] = value;
  } else {
    object[key] = nullptr;
  }
  object[key + "_hex"] = hex_float(value);
}

std::string dump_json(const nlohmann::ordered_json& value, const std::string& origin) {
  try {
    return value.dump(1) + "\n";
  } catch (const nlohmann::json::type_error& error) {
    throw CheckpointError(cat("cannot write ", origin, ": a text in it is not UTF-8 (",
                              error.what(), "). Fix: use UTF-8 in names and settings"));
  }
}

}  // namespace assay::checkpoints
