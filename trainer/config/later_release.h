// Settings and values that the command line's contract names and this release does not have. They
// are refused by name, so that nobody takes a setting without effect for one that works.
#pragma once

#include <span>
#include <string_view>

namespace assay::config {

inline constexpr std::string_view kRelease = "0.1";

struct LaterSetting {
  std::string_view key;      // a field's dotted key, or an option that is no field yet
  std::string_view value;    // the value concerned; empty: every use
  std::string_view instead;  // what to do until then
  bool takes_value = false;  // an option followed by a value
};

std::span<const LaterSetting> later_settings();

// By normalized option name; nullptr if it is none.
const LaterSetting* find_later_option(std::string_view name);
// By a field's key and a value's text; nullptr if it is none.
const LaterSetting* find_later_value(std::string_view key, std::string_view value);

}  // namespace assay::config
