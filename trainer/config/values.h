// Values of settings: read from option text and from JSON, checked against the field, shown.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "trainer/config/fields.h"

namespace assay::config {

// Nothing if the text or the JSON value is not a value that the field allows (type, range, choice).
// An integral number without rounding ("1e3") counts as an integer.
std::optional<Value> value_from_text(const Field& field, std::string_view text);
std::optional<Value> value_from_json(const Field& field, const nlohmann::json& json);

// Whether a value that is already in a configuration is allowed.
bool is_allowed(const Field& field, const Value& value);

nlohmann::json value_to_json(const Value& value);
// JSON text of a value: 64, 0.001, "adamw", null.
std::string value_text(const Value& value);
// Short JSON text of anything, for messages.
std::string shown_json(const nlohmann::json& json);
// What a user typed, for messages: a number as it is, anything else in quotes.
std::string shown_word(std::string_view text);

// "a number > 0", "an integer in 1 .. 2147483647", "one of sgd, adam, adamw".
std::string expected_text(const Field& field);

}  // namespace assay::config
