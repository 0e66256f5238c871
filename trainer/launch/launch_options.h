// The words of `assay launch`: torchrun's options and environment, and the program to start.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace assay::launch {

// Bits of torchrun's redirects and tee: 1 stdout, 2 stderr.
struct StreamModes {
  int all = 0;
  std::map<int64_t, int> of_rank;  // by local rank; ranks that are not named have none
  int of(int64_t local_rank) const;
  bool is_any() const { return all != 0 || !of_rank.empty(); }
};

struct LaunchOptions {
  std::string num_local_ranks = "1";  // a number, gpu, cpu or auto
  int64_t num_nodes = 1;
  std::optional<int64_t> node_rank;
  std::string endpoint_host;  // several nodes: where they meet, without brackets
  int64_t endpoint_port = 0;  // several nodes
  std::string master_addr;    // as given, without brackets; empty: not given
  int64_t store_port = 0;     // of the ranks' store; 0: any free one
  std::string local_addr;     // empty: as the others reach this host
  std::string run_id = "none";
  bool is_standalone = false;
  std::string role = "default";
  int64_t max_restarts = 0;
  double monitor_interval_seconds = 0.1;
  double join_timeout_seconds = 600;
  double keep_alive_seconds = 5;
  int64_t keep_alive_misses = 3;
  std::optional<double> grace_seconds;  // none: from what saves take
  std::string signals_text;             // as the ranks are told
  std::vector<int> signals;             // that are passed on
  std::string log_dir;                  // empty: no files
  StreamModes redirects;
  StreamModes tee;
  std::set<int64_t> shown_ranks;  // local ranks; empty: all
  std::vector<std::string> stdout_filters;
  std::vector<std::string> stderr_filters;
  std::string numa_binding = "auto";   // auto | none | node
  bool is_virtual_local_rank = false;  // each rank sees one GPU, as number 0
  bool is_help = false;
  std::vector<std::string> train_words;  // after "train"
};

// Looks a variable up; nullptr if unset.
using VariableLookup = std::function<const char*(const char*)>;

// PET_<OPTION> variables give defaults, the words win. Throws ConfigError for unknown options (with
// the nearest spelling), bad values, and any program but train.
LaunchOptions parse_launch_options(std::span<const std::string> words,
                                   const VariableLookup& lookup);

}  // namespace assay::launch
