// Does the trainer program load? LibTorch may be missing, too old for this system, or broken; this
// torch-free side can say so.
#pragma once

#include <string>

#include "platform/programs.h"

namespace assay::platform {

struct TrainerCheck {
  std::string path;
  bool is_usable = false;
  std::string version;  // what it says about itself, if usable
  std::string problem;  // else why not, and what to do
  std::string fix;
};

// Runs `<trainer> --version` and waits for it, at most `timeout_seconds` (a cold load of the CUDA
// libraries from a network disk takes tens of seconds).
TrainerCheck check_trainer(const TrainerProgram& trainer, double timeout_seconds = 120);

}  // namespace assay::platform
