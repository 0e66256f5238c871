// What the harness reads of a run folder (contract.md, "Run folder"), and how it thins one out once
// it was judged. Torch-free; trusts nothing it reads.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace assay::harness {

struct RunOutcome {  // result.json
  std::string status;
  int64_t final_step = 0;
  std::string state_digest;
  std::string stop_reason;
  int exit_code = 0;
  double wall_seconds = 0;
  double startup_seconds = 0;
};

// Throws DataError naming the file and the key that is missing or of another type.
RunOutcome read_outcome(const std::string& run_dir);

struct IdsLine {  // one line of ids-rank<r>.jsonl
  int64_t step = 0;
  int64_t epoch = 0;
  std::vector<int64_t> ids;
};

// A torn last line is left out, as a killed run may leave one. Throws DataError naming file and
// line for anything else that is wrong, or if there is no such file.
std::vector<IdsLine> read_ids(const std::string& run_dir, int64_t rank = 0);

// Bytes of all files in one committed checkpoint.
uint64_t checkpoint_bytes(const std::string& checkpoint);
uint64_t checkpoint_files(const std::string& checkpoint);

// Thins out a judged run folder and what it moved into abandoned-<n>/: of a checkpoint only its
// manifest stays (checksums and digests, enough for `assay diff`), lock files and what unfinished
// saves left go too. Logs stay. Returns the bytes that were freed.
uint64_t drop_weights(const std::string& run_dir);

}  // namespace assay::harness
