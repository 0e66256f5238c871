#include "harness/child_process.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <fcntl.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"

extern char** environ;

namespace assay::harness {
namespace {

bool is_dropped(std::string_view name, const std::vector<std::string>& dropped) {
  return std::any_of(dropped.begin(), dropped.end(), [&](const std::string& pattern) {
    if (pattern.ends_with('*')) {
      return name.starts_with(std::string_view(pattern).substr(0, pattern.size() - 1));
    }
    return name == pattern;
  });
}

std::vector<std::string> child_environment(const ChildRequest& request) {
  std::vector<std::string> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::string name(text.substr(0, text.find('=')));
    if (request.environment.count(name) != 0 || is_dropped(name, request.dropped_variables)) {
      continue;
    }
    variables.emplace_back(text);
  }
  for (const auto& [name, value] : request.environment) variables.push_back(cat(name, "=", value));
  return variables;
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> result;
  for (std::string& word : words) result.push_back(word.data());
  result.push_back(nullptr);
  return result;
}

struct PreparedChild {
  char* const* arguments;
  char* const* environment;
  const char* working_directory;
  int log_descriptor;
  int report_descriptor;  // where an errno goes if exec fails; closed by exec
  pid_t parent;
};

// Runs between fork and exec: async-signal-safe calls only.
[[noreturn]] void become_child(const PreparedChild& child) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  int problem = 0;
  if (getppid() != child.parent) _exit(127);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGQUIT}) signal(number, SIG_DFL);
  const int null_descriptor = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (null_descriptor < 0 || dup2(null_descriptor, STDIN_FILENO) < 0 ||
      dup2(child.log_descriptor, STDOUT_FILENO) < 0 ||
      dup2(child.log_descriptor, STDERR_FILENO) < 0 ||
      (child.working_directory != nullptr && chdir(child.working_directory) != 0)) {
    problem = errno;
  } else {
    execve(child.arguments[0], child.arguments, child.environment);
    problem = errno;
  }
  const ssize_t written = write(child.report_descriptor, &problem, sizeof problem);
  _exit(written == sizeof problem ? 127 : 126);
}

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

// Reads the errno that a failed exec left; 0 if exec went well (the pipe closed without a byte).
int read_exec_problem(int descriptor) {
  int problem = 0;
  ssize_t got = 0;
  do {
    got = read(descriptor, &problem, sizeof problem);
  } while (got < 0 && errno == EINTR);
  close(descriptor);
  return got == sizeof problem ? problem : 0;
}

}  // namespace

ChildProcess::ChildProcess(const ChildRequest& request) {
  if (request.command.empty()) throw InternalError("a child process without a program");
  std::vector<std::string> words = request.command;
  std::vector<std::string> variables = child_environment(request);
  const std::vector<char*> arguments = pointers(words);
  const std::vector<char*> environment = pointers(variables);
  const int log = open(request.log_file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (log < 0) throw FileError("cannot create", request.log_file, errno);
  int report[2];
  if (pipe2(report, O_CLOEXEC) != 0) {
    const int problem = errno;
    close(log);
    throw FileError("cannot make a pipe for", request.command.front(), problem);
  }
  const PreparedChild prepared{
      arguments.data(),
      environment.data(),
      request.working_directory.empty() ? nullptr : request.working_directory.c_str(),
      log,
      report[1],
      getpid()};
  pid_ = fork();
  const int fork_problem = errno;
  if (pid_ == 0) become_child(prepared);
  close(log);
  close(report[1]);
  if (pid_ < 0) {
    close(report[0]);
    throw CouldNotRunError(cat("cannot start ", assay::quoted(request.command.front()), ": ",
                               std::strerror(fork_problem), ". Fix: free processes or memory"));
  }
  setpgid(pid_, pid_);  // also here: whoever comes first, the group exists from now on
  const int problem = read_exec_problem(report[0]);
  if (problem != 0) {
    reap();
    throw CouldNotRunError(cat("cannot execute ", assay::quoted(request.command.front()), " in ",
                               assay::quoted(request.working_directory), ": ",
                               std::strerror(problem),
                               ". Expected: an executable file. Fix: build or install it"));
  }
}

ChildProcess::~ChildProcess() {
  if (exit_) return;
  signal_group(SIGKILL);
  reap();
}

void ChildProcess::signal_child(int number) {
  if (!exit_) kill(pid_, number);
}

void ChildProcess::signal_group(int number) {
  if (!exit_) kill(-pid_, number);
}

const std::optional<ChildExit>& ChildProcess::poll() {
  if (exit_) return exit_;
  siginfo_t info{};
  if (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
      info.si_pid == pid_) {
    // Not reaped yet, so the group's number is still ours: end what the child left running.
    kill(-pid_, SIGKILL);
    reap();
  }
  return exit_;
}

void ChildProcess::reap() {
  int status = 0;
  rusage usage{};
  pid_t got = 0;
  do {
    got = wait4(pid_, &status, 0, &usage);
  } while (got < 0 && errno == EINTR);
  ChildExit end;
  if (got == pid_ && WIFSIGNALED(status)) {
    end.signal_number = WTERMSIG(status);
  } else {
    end.exit_code = got == pid_ && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  end.cpu_seconds = seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
  end.peak_rss_bytes = static_cast<uint64_t>(usage.ru_maxrss) * 1024;  // Linux counts kilobytes
  exit_ = end;
}

ChildUsage ChildProcess::usage() const {
  ChildUsage usage;
  if (exit_) return usage;
  // proc(5): after the command name in parentheses, utime is field 14, stime 15, rss 24.
  std::string text;
  try {
    text = read_file(cat("/proc/", pid_, "/stat"));
  } catch (const FileError&) {
    return usage;  // ended between two polls: zeros, as the header says
  }
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return usage;
  const std::vector<std::string> fields = split(trimmed(text.substr(name_end + 1)), ' ');
  constexpr size_t kUserTime = 11, kSystemTime = 12, kRss = 21;  // counted after the name
  if (fields.size() <= kRss) return usage;
  const double ticks = static_cast<double>(parse_int64(fields[kUserTime]).value_or(0) +
                                           parse_int64(fields[kSystemTime]).value_or(0));
  usage.cpu_seconds = ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
  usage.rss_bytes = static_cast<uint64_t>(parse_int64(fields[kRss]).value_or(0)) *
                    static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return usage;
}

}  // namespace assay::harness
