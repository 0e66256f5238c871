// Starts the ranks of a job by hand, as a launcher would, and waits for all of them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/support/program.h"

namespace assay::support {

struct RanksRequest {
  std::string program = {};             // the trainer
  std::vector<std::string> words = {};  // "train", ...
  int64_t world_size = 2;
  std::map<std::string, std::string> environment = {};
  std::string working_directory = {};
  // Words of one rank instead of `words`; extra variables of one rank.
  std::map<int64_t, std::vector<std::string>> words_of = {};
  std::map<int64_t, std::map<std::string, std::string>> environment_of = {};
  // Called every millisecond for each rank; returns a signal to send to it, or 0. May be empty.
  std::function<int(int64_t rank)> watch = {};
  double limit_seconds = 120;
};

// By rank.
std::vector<ProgramEnd> run_ranks(const RanksRequest& request);

// A TCP port of loopback that was free a moment ago.
int free_port();

// "rank 0: 0 | rank 1: 5 assay: ..." for messages of failed tests.
std::string ends_text(const std::vector<ProgramEnd>& ends);

}  // namespace assay::support
