#include "base/log.h"

#include <array>
#include <cerrno>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <sys/ioctl.h>
#include <utility>
#include <vector>

#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/files.h"
#include "base/text.h"

namespace assay {
namespace {

constexpr std::string_view kClearLine = "\r\x1b[K";

struct LevelStyle {
  char letter;
  std::string_view color;
};

LevelStyle style_of(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return {'D', "\x1b[2m"};
    case LogLevel::kInfo:
      return {'I', ""};
    case LogLevel::kWarning:
      return {'W', "\x1b[33m"};
    case LogLevel::kError:
      return {'E', "\x1b[31m"};
  }
  throw InternalError(cat("log level ", static_cast<int>(level), " does not exist"));
}

// A terminal that is gone cannot be told about it, so that its errors end the attempt silently.
void write_to_terminal(std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(STDERR_FILENO, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;
    text.remove_prefix(static_cast<size_t>(count));
  }
}

size_t terminal_width() {
  constexpr size_t kUsualWidth = 80;
  winsize size{};
  const bool is_known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return is_known ? size.ws_col : kUsualWidth;
}

// The first `limit` characters of UTF-8 text: a longer progress line would wrap and stay.
std::string_view first_characters(std::string_view text, size_t limit) {
  size_t num_characters = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool is_start = (static_cast<unsigned char>(text[i]) & 0xC0) != 0x80;
    if (is_start && num_characters++ == limit) return text.substr(0, i);
  }
  return text;
}

bool is_variable_set(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0';
}

}  // namespace

LogLevel log_level_from_environment() {
  const char* value = std::getenv("ASSAY_LOG_LEVEL");
  if (value == nullptr || *value == '\0') return LogLevel::kInfo;
  const std::vector<std::string> names = {"debug", "info", "warning", "error"};
  const std::string word = value;
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == word) return static_cast<LogLevel>(i);
  }
  const std::optional<std::string> nearest = nearest_spelling(word, names);
  throw ConfigError(cat("ASSAY_LOG_LEVEL is ", quoted(word), ", expected debug, info, warning or ",
                        "error", nearest ? cat("; did you mean ", quoted(*nearest), "?") : ""));
}

struct Logger::State {
  explicit State(LogConfig given) : config(std::move(given)) {}

  void clear_progress() {
    if (std::exchange(has_progress, false)) write_to_terminal(kClearLine);
  }

  void say(LogLevel level, const std::string& line) {
    clear_progress();
    const std::string_view color = has_color ? style_of(level).color : std::string_view();
    write_to_terminal(cat(color, line, color.empty() ? "\n" : "\x1b[0m\n"));
  }

  void append_to_file(const std::string& line) {
    if (file == nullptr) return;
    try {
      file->append(cat(line, "\n"));
    } catch (const std::exception& error) {
      file.reset();
      say(LogLevel::kError,
          line_of(LogLevel::kError, cat("the log file is given up: ", describe_exception(error))));
    }
  }

  std::string line_of(LogLevel level, std::string_view text) const {
    return cat(utc_timestamp(), ' ', style_of(level).letter, " [rank ", config.rank, "] ",
               escaped(text));
  }

  std::mutex mutex;  // guards all below
  const LogConfig config;
  std::unique_ptr<AppendFile> file;
  bool is_terminal = false;
  bool has_color = false;
  bool has_progress = false;
};

Logger::Logger(LogConfig config) : state_(std::make_unique<State>(std::move(config))) {
  state_->is_terminal = ::isatty(STDERR_FILENO) == 1;
  state_->has_color = state_->is_terminal && !is_variable_set("NO_COLOR");
  if (!state_->config.file.empty()) open_file(state_->config.file);
}

Logger::~Logger() { state_->clear_progress(); }

void Logger::open_file(const std::string& path) {
  auto file = std::make_unique<AppendFile>(path, "log");
  const std::lock_guard lock(state_->mutex);
  state_->file = std::move(file);
}

void Logger::write(LogLevel level, std::string_view text) {
  if (level < state_->config.level) return;
  const std::lock_guard lock(state_->mutex);
  const std::string line = state_->line_of(level, text);
  const bool is_heard = !state_->config.is_terminal_quiet || level >= LogLevel::kWarning;
  if (is_heard) state_->say(level, line);
  state_->append_to_file(line);
}

void Logger::progress(std::string_view text) {
  const std::lock_guard lock(state_->mutex);
  if (!state_->is_terminal || state_->config.is_terminal_quiet) return;
  if (text.empty()) {
    state_->clear_progress();
    return;
  }
  const std::string shown = escaped(text);
  write_to_terminal(cat(kClearLine, first_characters(shown, terminal_width() - 1)));
  state_->has_progress = true;
}

bool Logger::is_terminal() const { return state_->is_terminal; }

bool Logger::has_color() const { return state_->has_color; }

}  // namespace assay
