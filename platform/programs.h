// Where the programs of this installation lie.
#pragma once

#include <string>

namespace assay::platform {

// Folder of the running program, links resolved.
std::string program_folder();

struct TrainerProgram {
  std::string path;
  bool is_from_environment = false;  // ASSAY_TRAIN named it; else it lies beside this program
};

// The trainer that `train` and `accept` start; it need not exist.
TrainerProgram find_trainer();

// Why that file cannot be started (missing, a folder, not executable); empty if it looks well.
std::string trainer_problem(const TrainerProgram& trainer);

// What to do about a trainer that cannot be started.
std::string trainer_fix(const TrainerProgram& trainer);

}  // namespace assay::platform
