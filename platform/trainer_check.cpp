#include "platform/trainer_check.h"

#include <algorithm>

#include "base/text.h"
#include "platform/child.h"

namespace assay::platform {
namespace {

// Text of another program, fit for a terminal: no control characters.
std::string shown(const std::string& text) {
  std::string clean = trimmed(text);
  std::replace_if(
      clean.begin(), clean.end(),
      [](unsigned char letter) { return (letter < 0x20 && letter != '\n') || letter == 0x7f; },
      ' ');
  return clean;
}

std::string fix_of_load(const std::string& output) {
  if (output.find("error while loading shared libraries") != std::string::npos) {
    return "build again with ./assay in the source folder (it provides LibTorch), or put the "
           "folder that holds the library into LD_LIBRARY_PATH";
  }
  if (output.find("GLIBC") != std::string::npos) {  // GLIBCXX as well
    return "build it on this machine with ./assay: the program is newer than this system's C "
           "library";
  }
  return "build again with ./assay in the source folder; if it stays, report this output";
}

}  // namespace

TrainerCheck check_trainer(const TrainerProgram& trainer, double timeout_seconds) {
  TrainerCheck check;
  check.path = trainer.path;
  const std::string missing = trainer_problem(trainer);
  if (!missing.empty()) {
    check.problem = cat("the trainer cannot be started: ", missing);
    check.fix = trainer_fix(trainer);
    return check;
  }
  const ChildResult result = run_and_capture({trainer.path, "--version"}, timeout_seconds);
  if (!result.start_error.empty()) {
    check.problem =
        cat("the trainer ", quoted(trainer.path), " cannot be started: ", result.start_error);
    check.fix = trainer_fix(trainer);
  } else if (result.is_timed_out) {
    check.problem = cat("the trainer ", quoted(trainer.path), " --version did not end within ",
                        duration_text(timeout_seconds));
    check.fix = "look at the disk that holds LibTorch and at the driver (nvidia-smi)";
  } else if (result.exit_code != 0) {
    check.problem = cat("the trainer ", quoted(trainer.path), " --version ended with code ",
                        result.exit_code, ", expected 0: ", shown(result.output));
    check.fix = fix_of_load(result.output);
  } else {
    check.is_usable = true;
    check.version = shown(result.output);
  }
  return check;
}

}  // namespace assay::platform
