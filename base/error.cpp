#include "base/error.h"

#include <exception>
#include <optional>
#include <string_view>

namespace assay {
namespace {

std::string on_one_line(std::string_view text) {
  std::string out;
  bool is_break_pending = false;
  for (const char letter : text) {
    if (letter == '\n' || letter == '\r') {
      is_break_pending = !out.empty();
      continue;
    }
    if (is_break_pending) out += " | ";
    is_break_pending = false;
    out += letter;
  }
  return out;
}

void append_description(const std::exception& error, std::string& out) {
  if (!out.empty()) out += ": ";
  out += on_one_line(error.what());
  try {
    std::rethrow_if_nested(error);
  } catch (const std::exception& inner) {
    append_description(inner, out);
  } catch (...) {
    out += ": unknown exception";
  }
}

std::optional<ExitCode> innermost_code(const std::exception& error) {
  try {
    std::rethrow_if_nested(error);
  } catch (const std::exception& inner) {
    if (const std::optional<ExitCode> code = innermost_code(inner)) return code;
  } catch (...) {
    // An exception of no known type carries no code; the outer one decides.
  }
  if (const auto* own = dynamic_cast<const Error*>(&error)) return own->code();
  return std::nullopt;
}

}  // namespace

std::string describe_exception(const std::exception& error) {
  std::string out;
  append_description(error, out);
  return out;
}

ExitCode exit_code_of(const std::exception& error) {
  return innermost_code(error).value_or(ExitCode::kInternal);
}

}  // namespace assay
