// Rank 0's part of a start: judges what the folder holds, takes it, and brings it to the state that
// the run starts from.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/log.h"
#include "data/dataset.h"
#include "trainer/config/run_config.h"
#include "trainer/run/run_start.h"

namespace assay::trainer {

struct TakenFolder {
  std::string run_dir;               // absolute; empty: the run is complete, nothing was touched
  std::unique_ptr<FolderLock> lock;  // held as long as the run lasts
  std::vector<std::string> notes;    // for the log, once its file is open
};

// `fingerprint`: of the folder when the start was decided. Throws ConfigError, DataError and
// CheckpointError. A folder that nobody named is made here and written into `start`.
TakenFolder take_folder(run::RunStart& start, const std::string& fingerprint,
                        const data::OpenedData& data, int64_t target_steps, Logger& log);

// The configuration without what concerns this one session.
config::RunConfig lasting(config::RunConfig config);

// Where the schedule of a resumed run ends; 0 for one that never falls.
int64_t horizon(const config::RunConfig& config, int64_t stored_total_steps, int64_t target_steps);

}  // namespace assay::trainer
