// The options of `assay launch` by name: torchrun's and a few of our own. What they mean is in
// launch_options.cpp.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace assay::launch {

struct LaunchOptionSpec {
  std::string_view name;        // with hyphens; the variable is PET_<NAME>, with underscores
  char short_name = '\0';       // 'r' for -r
  std::string_view value_name;  // empty: a flag
  std::string_view group;
  std::string_view help;          // one sentence
  std::string_view default_text;  // empty: off
};

std::span<const LaunchOptionSpec> launch_option_specs();

// "PET_NNODES" for nnodes.
std::string variable_of(const LaunchOptionSpec& spec);

// The option that a word names: "--nproc_per_node", "--nproc-per-node", "-r". Throws ConfigError
// with the nearest spelling; for torchrun's own that have no meaning here, with the reason.
const LaunchOptionSpec& launch_option(const std::string& word);

std::string launch_help();

}  // namespace assay::launch
