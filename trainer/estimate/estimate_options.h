// The words of `assay estimate`: its own options, and those of `assay train`. Torch-free.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trainer/config/run_config.h"

namespace assay::estimate {

struct EstimateOptions {
  std::vector<std::string> train_words;  // everything that is not ours
  bool is_help = false;
  bool is_json = false;
  std::vector<int64_t> worlds;          // sorted, without repeats; empty: not asked for
  std::optional<int64_t> dry_run_rank;  // take the role of this rank of the one world given
  std::optional<int64_t> ranks_per_node;
  std::optional<double> link_gb_per_s;
  std::optional<double> latency_us;
  std::optional<double> inter_gb_per_s;
  std::optional<double> inter_latency_us;
  std::optional<double> step_ms;
  std::optional<double> deviation_ms;
  std::string card;             // empty: the GPU that is here, else an H100
  std::string from_run;         // empty: none
  std::string all_reduce_file;  // empty: none
  std::optional<int64_t> context;
  std::vector<int64_t> requests = {1, 8, 32, 128};
};

// Throws ConfigError naming every bad word of ours at once. Options that are not ours are left for
// the trainer's parser.
EstimateOptions parse_estimate_options(std::span<const std::string> words);

std::string estimate_help();

// The run that the words describe, on top of `base` (null: the defaults). Throws ConfigError as
// parse_train_arguments does, and names an option of ours that is near to an unknown one.
config::RunConfig parse_planned_run(std::span<const std::string> train_words,
                                    const config::RunConfig* base);

}  // namespace assay::estimate
