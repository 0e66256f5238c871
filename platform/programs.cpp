#include "platform/programs.h"

#include <cstdlib>
#include <filesystem>
#include <system_error>

#include <unistd.h>

#include "base/files.h"
#include "base/text.h"

namespace assay::platform {

std::string program_folder() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? std::string(".") : self.parent_path().string();
}

TrainerProgram find_trainer() {
  const char* const named = std::getenv("ASSAY_TRAIN");
  if (named && *named) return {named, true};
  return {join_path(program_folder(), "assay-train"), false};
}

std::string trainer_problem(const TrainerProgram& trainer) {
  const std::string where =
      trainer.is_from_environment ? " (named by ASSAY_TRAIN)" : " (expected beside this program)";
  if (!path_exists(trainer.path)) return cat(quoted(trainer.path), " does not exist", where);
  if (!is_regular_file(trainer.path)) return cat(quoted(trainer.path), " is not a file", where);
  if (access(trainer.path.c_str(), X_OK) != 0) {
    return cat(quoted(trainer.path), " is not executable", where);
  }
  return {};
}

std::string trainer_fix(const TrainerProgram& trainer) {
  if (trainer.is_from_environment) return "correct ASSAY_TRAIN, or unset it";
  return "build it with ./assay in the source folder and install again, or set ASSAY_TRAIN to its "
         "path";
}

}  // namespace assay::platform
