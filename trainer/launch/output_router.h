// Where the ranks' output goes: the terminal, files, or both, with torchrun's folders and prefixes.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "trainer/launch/launch_options.h"
#include "trainer/launch/worker.h"

namespace assay::launch {

struct OutputSettings {
  std::string log_dir;  // empty: no files
  std::string run_id;
  std::string role;
  std::string prefix_template;  // TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE; empty: torchrun's default
  StreamModes redirects;
  StreamModes tee;
  std::set<int64_t> shown_ranks;  // empty: all
  std::vector<std::string> stdout_filters;
  std::vector<std::string> stderr_filters;
};

// "[default0]:", or what the template makes of ${role_name}, ${rank} and ${local_rank}.
std::string line_prefix(const OutputSettings& settings, int64_t rank, int64_t local_rank);

// Main thread only.
class OutputRouter {
 public:
  // Makes <log_dir>/<run_id>_<random>/ where files are wanted. Throws LaunchError.
  explicit OutputRouter(OutputSettings settings);
  ~OutputRouter();  // finishes
  OutputRouter(const OutputRouter&) = delete;
  OutputRouter& operator=(const OutputRouter&) = delete;

  const std::string& folder() const { return folder_; }  // empty without files
  void begin_attempt(int64_t attempt);                   // throws LaunchError
  // What this rank gets; its folder <attempt>/<local_rank> is made. Throws LaunchError.
  WorkerStreams open(int64_t rank, int64_t local_rank);
  std::string error_file(int64_t local_rank) const;  // empty without files
  void close_child_ends();  // after the ranks were started: keeps only what is read here

  std::vector<int> readable();  // descriptors to wait for; none while the terminal takes nothing
  void pump();                  // moves what is there; waits only for a terminal
  void finish();                // end of an attempt: the rest, then closes everything

 private:
  struct Tee {
    int from = -1;  // pipe
    int file = -1;  // -1: none
    int terminal = -1;
    int filtered = -1;  // shared by the ranks of an attempt
    const std::vector<std::string>* filters = nullptr;
    std::string prefix;
    std::string pending;  // an unfinished line
  };
  struct Stream {
    int bit = 0;
    const char* file_name = nullptr;
    int terminal = -1;
  };
  int open_stream(const Stream& stream, int64_t rank, int64_t local_rank);
  int filtered_file(const Stream& stream);
  void move(Tee& tee, int most_reads);
  static void write_line(const Tee& tee, const std::string& line);

  const OutputSettings settings_;
  std::string folder_;
  std::string attempt_folder_;
  std::vector<Tee> tees_;
  std::vector<int> child_ends_;
  std::map<int, int> filtered_files_;  // by bit of the stream
};

}  // namespace assay::launch
