#include "platform/child.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <sys/wait.h>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"

namespace assay::platform {
namespace {

constexpr size_t kMaxOutputBytes = size_t{64} << 10;

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() { reset(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return number_; }
  void reset() {
    if (number_ >= 0) close(number_);
    number_ = -1;
  }

 private:
  int number_;
};

// Starts the program with both outputs on `sink`; returns errno, 0 for success.
int start(const std::vector<std::string>& words, int sink, pid_t* child) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  int code = posix_spawn_file_actions_init(&actions);
  if (code != 0) return code;
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, sink, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, sink, STDERR_FILENO);
  code = posix_spawn(child, words[0].c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  return code;
}

// Reads until the other end is closed (true) or the deadline passes (false).
bool read_until(int source, double deadline, std::string& output) {
  std::array<char, 4096> buffer;
  for (;;) {
    const double left = deadline - monotonic_seconds();
    if (left <= 0) return false;
    pollfd watched = {source, POLLIN, 0};
    const int wait_ms = static_cast<int>(std::min(left, 60.0) * 1000) + 1;
    if (poll(&watched, 1, wait_ms) <= 0) continue;
    const ssize_t count = read(source, buffer.data(), buffer.size());
    if (count == 0) return true;
    if (count < 0) {
      if (errno == EINTR) continue;
      return true;
    }
    const size_t room = kMaxOutputBytes - std::min(kMaxOutputBytes, output.size());
    output.append(buffer.data(), std::min(room, static_cast<size_t>(count)));
  }
}

// Waits for the end; false at the deadline. Checked every 5 ms: only a program that closed its
// outputs early is waited for here.
bool wait_until(pid_t child, double deadline, int* status) {
  while (waitpid(child, status, WNOHANG) == 0) {
    if (monotonic_seconds() >= deadline) return false;
    poll(nullptr, 0, 5);
  }
  return true;
}

}  // namespace

ChildResult run_and_capture(const std::vector<std::string>& words, double timeout_seconds) {
  ChildResult result;
  int ends[2] = {-1, -1};
  if (pipe2(ends, O_CLOEXEC) != 0) {
    result.start_error = cat("cannot make a pipe: ", std::strerror(errno));
    return result;
  }
  const Descriptor source(ends[0]);
  Descriptor sink(ends[1]);
  pid_t child = 0;
  const int code = start(words, sink.get(), &child);
  sink.reset();
  if (code != 0) {
    result.start_error = std::strerror(code);
    return result;
  }
  const double deadline = monotonic_seconds() + timeout_seconds;
  int status = 0;
  if (!read_until(source.get(), deadline, result.output) || !wait_until(child, deadline, &status)) {
    result.is_timed_out = true;
    kill(child, SIGKILL);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
  }
  result.exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return result;
}

}  // namespace assay::platform
