// What the launcher says on standard error.
#pragma once

#include <string>

#include "base/log.h"

namespace assay::launch {

class LaunchLog {
 public:
  explicit LaunchLog(LogLevel level) : level_(level) {}
  void info(const std::string& text) const;     // one line, control characters escaped
  void warning(const std::string& text) const;  // likewise
  void block(const std::string& lines) const;   // as it is; always shown

 private:
  LogLevel level_;
};

}  // namespace assay::launch
