// The exit codes of contract.md and the exceptions that lead to them.
#pragma once

#include <stdexcept>
#include <string>

namespace assay {

// Part of the command line's contract; never renumber.
enum class ExitCode : int {
  kOk = 0,
  kInternal = 1,     // our bug
  kUsage = 2,        // usage or configuration
  kData = 3,         // data missing, broken or not matching
  kCheckpoint = 4,   // checkpoint missing, broken, not matching or not writable
  kLaunch = 5,       // launch, rendezvous or collective failed
  kCheckFailed = 6,  // an acceptance check failed, or a difference was found
  kDiverged = 7,     // stopped on non-finite or diverged numbers
  kCouldNotRun = 8,  // no verdict possible here
};

// Base of every error that a user can meet. The message says what failed, where, what was got,
// what was expected, and how to fix it, in one line if it fits.
class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ExitCode code() const { return code_; }

 private:
  ExitCode code_;
};

class ConfigError : public Error {
 public:
  explicit ConfigError(const std::string& message) : Error(ExitCode::kUsage, message) {}
};

class DataError : public Error {
 public:
  explicit DataError(const std::string& message) : Error(ExitCode::kData, message) {}
};

class CheckpointError : public Error {
 public:
  explicit CheckpointError(const std::string& message) : Error(ExitCode::kCheckpoint, message) {}
};

class LaunchError : public Error {
 public:
  explicit LaunchError(const std::string& message) : Error(ExitCode::kLaunch, message) {}
};

// The numbers went non-finite or diverged; the run stops with its last good state on disk.
class DivergedError : public Error {
 public:
  explicit DivergedError(const std::string& message) : Error(ExitCode::kDiverged, message) {}
};

// No verdict is possible on this machine.
class CouldNotRunError : public Error {
 public:
  explicit CouldNotRunError(const std::string& message) : Error(ExitCode::kCouldNotRun, message) {}
};

// An invariant of ours is broken: a bug, never a user's mistake.
class InternalError : public Error {
 public:
  explicit InternalError(const std::string& message) : Error(ExitCode::kInternal, message) {}
};

// Flattens an exception and everything nested in it (std::throw_with_nested) to one line,
// outermost context first.
std::string describe_exception(const std::exception& error);

// Exit code of an exception: the innermost assay::Error's code, else kInternal.
ExitCode exit_code_of(const std::exception& error);

}  // namespace assay
