// What a program says: lines to the terminal and to the rank's log file. Thread-safe.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace assay {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

struct LogConfig {
  LogLevel level = LogLevel::kInfo;  // ASSAY_LOG_LEVEL=debug|info|warning|error
  int rank = 0;
  bool is_terminal_quiet = false;  // ranks other than 0 speak only of warnings and errors
  std::string file = "";           // log-rank<r>.txt, empty for none; appended
};

// The level that ASSAY_LOG_LEVEL names, kInfo if unset; throws ConfigError for another word.
LogLevel log_level_from_environment();

// One logger a program, built in main and passed by reference. Lines are
// "2026-12-01T02:32:32.123Z I [rank 0] text"; control characters in text are escaped.
// Logging never throws: when the file cannot be written, the terminal is told once and the file is
// given up.
class Logger {
 public:
  explicit Logger(LogConfig config);
  ~Logger();
  Logger(const Logger&) = delete;
  Logger& operator=(const Logger&) = delete;
  void debug(std::string_view text) { write(LogLevel::kDebug, text); }
  void info(std::string_view text) { write(LogLevel::kInfo, text); }
  void warning(std::string_view text) { write(LogLevel::kWarning, text); }
  void error(std::string_view text) { write(LogLevel::kError, text); }
  // Starts writing to a log file too (once the run folder is known). Throws FileError.
  void open_file(const std::string& path);
  // A progress line: rewritten in place on a terminal, dropped from files. Empty clears it.
  void progress(std::string_view text);
  bool is_terminal() const;
  bool has_color() const;  // a terminal, and NO_COLOR is not set

 private:
  struct State;
  void write(LogLevel level, std::string_view text);
  std::unique_ptr<State> state_;
};

}  // namespace assay
