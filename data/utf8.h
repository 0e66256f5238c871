// Where bytes stop being UTF-8, and the usual repair. RFC 3629: no surrogates, nothing overlong.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace assay::data {

// Length of the longest valid UTF-8 text at the start; text.size() if all of it is valid.
size_t valid_utf8_prefix(std::string_view text);

// Each maximal part of an ill-formed sequence becomes one U+FFFD (Unicode 15, section 3.9,
// "Substitution of Maximal Subparts"), as Python's errors="replace" does.
std::string with_replacements(std::string_view text);

}  // namespace assay::data
