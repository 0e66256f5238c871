// One program run as a child: started in a process group of its own, tied to this process's life,
// waited for, signalled, and never left behind.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace assay::harness {

struct ChildRequest {
  std::vector<std::string> command;                // program (a path) and its words
  std::string working_directory;                   // empty: this one's
  std::map<std::string, std::string> environment;  // added to the inherited one
  std::vector<std::string> dropped_variables;      // names, or prefixes that end in '*'
  std::string log_file;                            // stdout and stderr, created anew
};

struct ChildExit {
  std::optional<int> exit_code;  // one of these two is set
  std::optional<int> signal_number;
  double cpu_seconds = 0;  // user and system, of the child and what it waited for
  uint64_t peak_rss_bytes = 0;
};

// Use of a running child, from /proc; zeros once it is gone.
struct ChildUsage {
  double cpu_seconds = 0;
  uint64_t rss_bytes = 0;
};

// Not thread-safe: start and destruction must happen on one thread, since the kernel ties the
// child's life (PR_SET_PDEATHSIG) to the thread that started it. The destructor kills the whole
// group with SIGKILL and reaps it.
class ChildProcess {
 public:
  // Throws CouldNotRunError naming the program and the system's reason if it cannot be executed,
  // FileError if the log cannot be created.
  explicit ChildProcess(const ChildRequest& request);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }
  void signal_child(int number);  // to the child alone; nothing if it has ended
  void signal_group(int number);  // to everything it started too
  // The end, if it has come; kills what is left of the group. Does not block.
  const std::optional<ChildExit>& poll();
  ChildUsage usage() const;

 private:
  void reap();

  pid_t pid_ = -1;
  std::optional<ChildExit> exit_;
};

}  // namespace assay::harness
