// The ledger of samples: proves from ids-rank<r>.jsonl that no sample was lost, repeated or taken
// out of its epoch, and that no step is missing or double. Pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "harness/run_folder.h"

namespace assay::harness {

struct LedgerRules {
  int64_t first_step = 1;
  int64_t last_step = 0;      // of the run
  int64_t train_samples = 0;  // size of the data set; 0: unknown, only what the ids show
  bool drops_last = false;    // an epoch may leave out its last, shorter window
};

struct LedgerFinding {
  int64_t step = 0;  // where it shows; 0: the epoch as a whole
  int64_t epoch = 0;
  std::string problem;  // "sample 17 is used twice: at steps 3 and 9"
};

struct Ledger {
  int64_t steps = 0;
  int64_t samples = 0;
  int64_t whole_epochs = 0;  // epochs that were used up, each checked to hold every sample once
  std::vector<LedgerFinding> findings;
};

// Every rule: steps first..last once each in order; epochs never fall and rise by one; a sample at
// most once in an epoch; every sample in each epoch that was left behind; ids in range.
Ledger check_ledger(std::span<const IdsLine> lines, const LedgerRules& rules);

// The first step at which two ledgers use other samples, or the same in another order; empty text
// if there is none over their common steps.
std::string first_ledger_difference(std::span<const IdsLine> left, std::span<const IdsLine> right);

}  // namespace assay::harness
