// The `assay` program: everything but training itself. Torch-free, so that it starts in
// milliseconds and works where LibTorch does not load.
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "cli/command_line.h"

namespace {

// What was printed must have arrived: a full disk behind `assay doctor --json > file` is an error.
void finish_output() {
  errno = 0;
  std::cout.flush();
  const bool is_flushed = std::fflush(stdout) == 0;
  const int reason = errno;
  if (is_flushed && std::ferror(stdout) == 0 && std::cout) return;
  throw assay::CouldNotRunError(assay::cat(
      "cannot write standard output: ", reason != 0 ? std::strerror(reason) : "a write failed",
      ". Fix: send it to a place that takes it"));
}

}  // namespace

int main(int argc, char** argv) {
  assay::ensure_standard_streams();
  // As other command line tools: `assay ... | head` ends quietly, whatever the parent set.
  std::signal(SIGPIPE, SIG_DFL);
  try {
    const std::vector<std::string> words(argv + (argc > 0 ? 1 : 0), argv + argc);
    const int code = assay::cli::run_command_line(words);
    finish_output();
    return code;
  } catch (const std::exception& error) {
    std::fflush(stdout);
    std::fputs(assay::cat("assay: ", assay::describe_exception(error), "\n").c_str(), stderr);
    return static_cast<int>(assay::exit_code_of(error));
  }
}
