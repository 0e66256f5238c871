// Strict reading of JSON: comments allowed where asked, duplicate keys refused with their path, a
// byte-order mark and CRLF accepted, other encodings and deep nesting refused. Writing goes through
// nlohmann's dump in the .cpp files; non-finite numbers must never reach it.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace assay {

struct JsonRules {
  bool allow_comments = false;
  int max_depth = 64;
};

// `origin` names the file in messages. Throws ConfigError with line, column and what is wrong.
nlohmann::json parse_json(std::string_view text, const std::string& origin,
                          const JsonRules& rules = {});

}  // namespace assay
