#include "cli/command_line.h"

#include <array>
#include <cstdio>
#include <optional>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/fault_points.h"
#include "base/text.h"
#include "base/version.h"
#include "checkpoints/checkpoint_command.h"
#include "checkpoints/diff_command.h"
#include "cli/train_command.h"
#include "data/data_command.h"
#include "harness/accept_command.h"
#include "harness/verify_command.h"
#include "platform/doctor_command.h"
#include "platform/environment.h"
#include "trainer/launch/launch_command.h"

namespace assay::cli {
namespace {

using Handler = int (*)(std::span<const std::string>);

struct Command {
  std::string_view name;
  std::string_view group;  // heading in the help
  std::string_view text;   // one sentence
  Handler run = nullptr;   // null: not in this release
};

int run_data(std::span<const std::string> words) {
  return data::run_data_command(words, platform::available_cpus());
}

constexpr std::string_view kRelease = "0.1";
constexpr std::string_view kJudge = "Judge a machine";
constexpr std::string_view kTrain = "Train";
constexpr std::string_view kLook = "Look at what was written";

// In the order of the help.
constexpr std::array<Command, 13> kCommands = {{
    {"accept", kJudge, "Run acceptance scenarios with real training and write the report",
     harness::run_accept_command},
    {"doctor", kJudge, "Record this machine, say what looks wrong and how to fix it",
     platform::run_doctor_command},
    {"verify", kJudge, "Check a report's evidence against its hashes", harness::run_verify_command},
    {"compare", kJudge, "Compare platforms from their acceptance folders"},
    {"history", kJudge, "Show trends over many acceptance folders"},
    {"train", kTrain, "Train a model: one rank, alone a whole run", run_train_command},
    {"launch", kTrain, "Start and supervise the ranks of a run", launch::run_launch_command},
    {"estimate", kTrain, "Say what a run will need before it starts", run_estimate_command},
    {"watch", kTrain, "Follow a run from another terminal"},
    {"checkpoint", kLook, "List, inspect, verify and digest checkpoints",
     checkpoints::run_checkpoint_command},
    {"diff", kLook, "Find the first difference of two runs or two checkpoints",
     checkpoints::run_diff_command},
    {"data", kLook, "Show and verify data sets, pack them, tokenize text", run_data},
    {"sample", kLook, "Write text with a GPT checkpoint"},
}};

std::string summary() {
  std::string out =
      "Usage: assay COMMAND [options]\n"
      "A reference trainer on LibTorch, and a harness that judges a machine by real training.\n";
  std::string_view group;
  std::vector<std::string> later;
  for (const Command& command : kCommands) {
    if (!command.run) {
      later.emplace_back(command.name);
      continue;
    }
    if (command.group != group) out += cat("\n", command.group, ":\n");
    group = command.group;
    std::string name = cat("  ", command.name);
    name.resize(14, ' ');
    out += cat(name, command.text, "\n");
  }
  out +=
      "\nOptions:\n"
      "  --help      Print this help; after a command, the help of that command\n"
      "  --version   Print version, commit, LibTorch, CUDA and NCCL\n"
      "\nExit codes: 0 done and all checks passed, 2 usage or configuration, 3 data, 4 "
      "checkpoint,\n"
      "5 launch, 6 a check failed or a difference was found, 7 diverged, 8 could not run here,\n"
      "1 unexpected, 128+N stopped by signal N after saving.\n";
  return out + cat("\nNot in this release (", kRelease, "): ", join(later, ", "), ".\n");
}

std::string version_text() {
  const std::string torch = build_libtorch_version();
  const std::string cuda = build_cuda_version();
  const std::string nccl = build_nccl_version();
  const auto or_none = [](const std::string& version) {
    return version.empty() ? std::string("none in this build") : version;
  };
  return cat("assay     ", version_string(), "\ncommit    ", git_commit(), "\ncompiler  ",
             build_compiler(), "\nLibTorch  ", or_none(torch), "\nCUDA      ", or_none(cuda),
             "\nNCCL      ", or_none(nccl), "\n");
}

void print(const std::string& text, FILE* stream) {
  std::fwrite(text.data(), 1, text.size(), stream);
}

[[noreturn]] void refuse(const std::string& word) {
  const bool is_option = !word.empty() && word.front() == '-';
  std::vector<std::string> names;
  if (is_option) names = {"--help", "--version"};
  for (const Command& command : kCommands) {
    if (!is_option) names.emplace_back(command.name);
  }
  if (!is_option) names.emplace_back("help");
  const std::string what = cat(is_option ? "unknown option " : "unknown command ", quoted(word));
  if (const std::optional<std::string> near = nearest_spelling(word, names)) {
    throw ConfigError(cat(what, "; did you mean ", quoted(*near), "?"));
  }
  if (is_option) {
    throw ConfigError(
        cat(what, " before a command. Fix: name the command first, e.g. assay train ", word));
  }
  throw ConfigError(cat(what, ", expected one of ", join(names, ", "), ". Fix: see assay --help"));
}

const Command& command_named(const std::string& word) {
  if (word == "test") {
    throw ConfigError("assay test needs the source folder. Fix: run ./assay test there");
  }
  for (const Command& command : kCommands) {
    if (word != command.name) continue;
    if (command.run) return command;
    throw ConfigError(cat("assay ", word, " is not in this release (", kRelease,
                          "). Fix: see assay --help for what is"));
  }
  refuse(word);
}

int run_help(std::span<const std::string> words) {
  if (words.empty()) {
    print(summary(), stdout);
    return static_cast<int>(ExitCode::kOk);
  }
  if (words.size() > 1) {
    throw ConfigError(cat("assay help takes one command, got ", words.size(),
                          " words. Fix: assay help ", quoted(words[0])));
  }
  if (words[0] == "help" || words[0] == "--help") return run_help({});
  const std::vector<std::string> help = {"--help"};
  return command_named(words[0]).run(help);
}

}  // namespace

int run_command_line(std::span<const std::string> words) {
  if (words.empty()) {
    print(summary(), stderr);
    return static_cast<int>(ExitCode::kUsage);
  }
  const std::string& first = words[0];
  if (first == "--version" || first == "-V") {
    print(version_text(), stdout);
    return static_cast<int>(ExitCode::kOk);
  }
  if (first == "help" || first == "--help" || first == "-h") return run_help(words.subspan(1));
  const Command& command = command_named(first);
  // The trainer arms its own faults; arming them here too would fire them twice.
  const bool is_starter = command.run == run_train_command ||
                          command.run == run_estimate_command ||
                          command.run == launch::run_launch_command;
  if (!is_starter) arm_faults_from_environment();
  return command.run(words.subspan(1));
}

}  // namespace assay::cli
