#include "cli/train_command.h"

#include <cerrno>
#include <cstring>
#include <string_view>
#include <vector>

#include <unistd.h>

#include "base/error.h"
#include "base/text.h"
#include "platform/programs.h"

namespace assay::cli {
namespace {

int become_trainer(std::string_view command, std::span<const std::string> words) {
  const platform::TrainerProgram trainer = platform::find_trainer();
  const std::string problem = platform::trainer_problem(trainer);
  if (!problem.empty()) {
    throw CouldNotRunError(
        cat("cannot start the trainer: ", problem, ". Fix: ", platform::trainer_fix(trainer)));
  }
  std::vector<std::string> texts = {trainer.path, std::string(command)};
  texts.insert(texts.end(), words.begin(), words.end());
  std::vector<char*> arguments;
  for (std::string& text : texts) arguments.push_back(text.data());
  arguments.push_back(nullptr);
  execv(trainer.path.c_str(), arguments.data());
  throw CouldNotRunError(cat("cannot start the trainer ", quoted(trainer.path), ": ",
                             std::strerror(errno), ". Fix: ", platform::trainer_fix(trainer)));
}

}  // namespace

int run_train_command(std::span<const std::string> words) { return become_trainer("train", words); }

int run_estimate_command(std::span<const std::string> words) {
  return become_trainer("estimate", words);
}

}  // namespace assay::cli
