// One rank as a child process: started with its environment, watched, told to end.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <sys/types.h>
#include <vector>

#include "trainer/launch/failure_report.h"
#include "trainer/launch/progress_page.h"

namespace assay::launch {

// Descriptors that a worker gets as stdout and stderr; -1: this process's own.
struct WorkerStreams {
  int out = -1;
  int err = -1;
};

struct WorkerSpec {
  std::string program;
  std::vector<std::string> arguments;              // after the program's name
  std::map<std::string, std::string> environment;  // on top of this process's
  int64_t rank = 0;
  int64_t local_rank = 0;
  int store_fd = -1;  // listening socket for global rank 0, else -1
  WorkerStreams streams;
  std::string error_file;     // empty: kept in memory
  std::vector<int64_t> cpus;  // to be bound to; empty: no binding
};

// Main thread only: the kernel ends the child when the thread that made it ends. The child is the
// leader of a process group of its own, which ends with it.
class Worker {
 public:
  // Throws LaunchError if the process cannot be made. A program that cannot be executed shows as a
  // rank that ends with exit code 8 and says why.
  explicit Worker(const WorkerSpec& spec);
  ~Worker();  // kills the child if it still runs
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  int64_t rank() const { return end_.rank; }
  bool is_running() const { return is_running_; }
  // True if it ended in this call; `treatment` says what had been done to it before.
  bool poll(RankTreatment treatment);
  void send(int signal_number);  // nothing after the end
  void kill_group();             // SIGKILL to it and what it started
  bool is_stopped() const;       // by SIGSTOP or the like
  RankProgress progress() const { return page_.read(); }
  const RankEnd& end() const { return end_; }
  RankEnd standing() const;  // where it stands, running or not

 private:
  void note_end(int status);
  std::string read_message() const;

  ProgressPage page_;
  int error_fd_ = -1;  // memfd; -1: the error file is on disk
  std::string error_file_;
  pid_t pid_ = -1;
  bool is_running_ = false;
  RankEnd end_;
};

}  // namespace assay::launch
