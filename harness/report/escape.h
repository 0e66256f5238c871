// Text made safe for the place where it is shown. Whatever a name, a path or a log line holds, it
// is seen as text: no markup, no control characters, no terminal escapes.
#pragma once

#include <string>
#include <string_view>

namespace assay::harness {

// Control characters and invalid UTF-8 become \xNN; tabs and newlines become spaces.
std::string visible_text(std::string_view text);
// visible_text, then & < > " ' as entities: for HTML and XML text and quoted attributes.
std::string markup_escaped(std::string_view text);
// visible_text, then what Markdown and a table cell would interpret, escaped.
std::string markdown_escaped(std::string_view text);

// At most `digits` significant digits, no locale: for people, not for programs.
std::string shown_number(double value, int digits = 4);

}  // namespace assay::harness
