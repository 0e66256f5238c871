#include "trainer/launch/worker.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <new>
#include <string_view>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <sched.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "trainer/launch/address.h"
#include "trainer/launch/rank_env.h"

namespace assay::launch {
namespace {

constexpr uint64_t kMostErrorBytes = uint64_t{1} << 20;

std::vector<std::string> environment_with(const std::map<std::string, std::string>& changes) {
  std::vector<std::string> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::string name(text.substr(0, text.find('=')));
    if (!changes.contains(name)) entries.emplace_back(text);
  }
  for (const auto& [name, value] : changes) entries.push_back(cat(name, "=", value));
  return entries;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (std::string& text : texts) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

// A set of CPUs of any number; machines with more than 1,024 do not fit the fixed one.
class CpuSet {
 public:
  explicit CpuSet(const std::vector<int64_t>& cpus) {
    if (cpus.empty()) return;
    size_t capacity = 1024;
    for (const int64_t cpu : cpus) capacity = std::max(capacity, static_cast<size_t>(cpu) + 1);
    bytes_ = CPU_ALLOC_SIZE(capacity);
    set_ = CPU_ALLOC(capacity);
    if (set_ == nullptr) throw std::bad_alloc();
    CPU_ZERO_S(bytes_, set_);
    for (const int64_t cpu : cpus) CPU_SET_S(static_cast<size_t>(cpu), bytes_, set_);
  }
  ~CpuSet() {
    if (set_ != nullptr) CPU_FREE(set_);
  }
  CpuSet(const CpuSet&) = delete;
  CpuSet& operator=(const CpuSet&) = delete;
  const cpu_set_t* get() const { return set_; }
  size_t bytes() const { return bytes_; }

 private:
  cpu_set_t* set_ = nullptr;
  size_t bytes_ = 0;
};

struct ChildPlan {
  char** arguments;
  char** environment;
  pid_t parent;
  WorkerStreams streams;
  const std::vector<int>& kept_fds;
  const CpuSet& cpus;
  std::string_view exec_problem;  // what to say if the program does not start
};

// Runs between fork and exec: async-signal-safe calls only.
[[noreturn]] void become_worker(const ChildPlan& plan) {
  // The kernel ends this rank with its launcher, however that ends.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != plan.parent) _exit(static_cast<int>(ExitCode::kLaunch));
  // A terminal's Ctrl-C reaches the launcher alone, which passes it on once.
  setpgid(0, 0);
  const int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (null_fd >= 0) dup2(null_fd, STDIN_FILENO);  // a terminal would stop a background reader
  if (plan.streams.out >= 0) dup2(plan.streams.out, STDOUT_FILENO);
  if (plan.streams.err >= 0) dup2(plan.streams.err, STDERR_FILENO);
  for (const int fd : plan.kept_fds) fcntl(fd, F_SETFD, 0);
  if (plan.cpus.get() != nullptr) sched_setaffinity(0, plan.cpus.bytes(), plan.cpus.get());
  for (int number = 1; number < NSIG; ++number) signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execve(plan.arguments[0], plan.arguments, plan.environment);
  const bool is_said =
      write(STDERR_FILENO, plan.exec_problem.data(), plan.exec_problem.size()) >= 0;
  _exit(static_cast<int>(is_said ? ExitCode::kCouldNotRun : ExitCode::kLaunch));
}

}  // namespace

Worker::Worker(const WorkerSpec& spec)
    : page_(ProgressPage::create()), error_file_(spec.error_file) {
  end_.rank = spec.rank;
  end_.local_rank = spec.local_rank;
  end_.host = host_name();
  std::vector<int> kept = {page_.fd()};
  std::map<std::string, std::string> environment = spec.environment;
  environment[kProgressVariable] = cat(page_.fd());
  if (error_file_.empty()) {
    error_fd_ = memfd_create("assay-error", MFD_CLOEXEC);
    if (error_fd_ < 0) throw LaunchError(cat("cannot make an error file: ", std::strerror(errno)));
    kept.push_back(error_fd_);
    error_file_ = cat(kMemoryErrorFilePrefix, error_fd_);
  }
  environment["TORCHELASTIC_ERROR_FILE"] = error_file_;
  if (spec.store_fd >= 0) {
    kept.push_back(spec.store_fd);
    environment[kStoreSocketVariable] = cat(spec.store_fd);
  }
  std::vector<std::string> arguments = {spec.program};
  arguments.insert(arguments.end(), spec.arguments.begin(), spec.arguments.end());
  std::vector<std::string> variables = environment_with(environment);
  std::vector<char*> argument_list = pointers(arguments);
  std::vector<char*> variable_list = pointers(variables);
  const CpuSet cpus(spec.cpus);
  const std::string problem = cat("assay launch: the system does not execute ",
                                  quoted(spec.program), ". Fix: build it for this machine\n");
  const ChildPlan plan{
      argument_list.data(), variable_list.data(), getpid(), spec.streams, kept, cpus, problem};
  pid_ = fork();
  if (pid_ == 0) become_worker(plan);
  if (pid_ < 0) {
    const int error = errno;
    if (error_fd_ >= 0) close(error_fd_);
    throw LaunchError(cat("cannot start rank ", spec.rank, ": ", std::strerror(error),
                          ". Fix: see ulimit -u, or start fewer ranks"));
  }
  setpgid(pid_, pid_);  // also here: whoever comes first, the group exists from now on
  is_running_ = true;
  end_.pid = pid_;
}

Worker::~Worker() {
  if (is_running_) {
    kill_group();
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
  }
  if (error_fd_ >= 0) close(error_fd_);
}

bool Worker::poll(RankTreatment treatment) {
  if (!is_running_) return false;
  siginfo_t info{};
  if (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
      info.si_pid != pid_) {
    return false;
  }
  // Not reaped yet, so that the group's number is still ours: end what the rank left running.
  ::kill(-pid_, SIGKILL);
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  end_.treatment = treatment;
  note_end(status);
  return true;
}

void Worker::note_end(int status) {
  is_running_ = false;
  end_.ended_at = monotonic_seconds();
  if (WIFSIGNALED(status)) {
    end_.signal_number = WTERMSIG(status);
  } else {
    end_.exit_code = WEXITSTATUS(status);
  }
  end_.progress = page_.read();
  end_.message = read_message();
}

void Worker::send(int signal_number) {
  if (is_running_) ::kill(pid_, signal_number);
}

void Worker::kill_group() {
  if (!is_running_) return;
  ::kill(pid_, SIGKILL);
  ::kill(-pid_, SIGKILL);
}

bool Worker::is_stopped() const {
  if (!is_running_) return false;
  try {
    // proc(5): the state follows the command's name in parentheses.
    const std::string stat = read_file(cat("/proc/", pid_, "/stat"));
    const size_t name_end = stat.rfind(')');
    return name_end != std::string::npos && name_end + 2 < stat.size() &&
           (stat[name_end + 2] == 'T' || stat[name_end + 2] == 't');
  } catch (const FileError&) {
    return false;  // it has just ended
  }
}

RankEnd Worker::standing() const {
  RankEnd standing = end_;
  if (is_running_) standing.progress = page_.read();
  return standing;
}

std::string Worker::read_message() const {
  const std::string path = error_fd_ >= 0 ? cat(kMemoryErrorFilePrefix, error_fd_) : error_file_;
  std::string text;
  try {
    if (path_exists(path)) text = read_file(path, kMostErrorBytes);
  } catch (const FileError&) {
    return "";  // its own stderr has the message too
  }
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("message")) return "";
  const auto& message = json["message"];
  if (message.is_string()) return message.get<std::string>();
  const auto inner = message.is_object() ? message.find("message") : message.end();
  return inner != message.end() && inner->is_string() ? inner->get<std::string>() : "";
}

}  // namespace assay::launch
