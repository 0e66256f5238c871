#include "data/data_command.h"

#include <algorithm>
#include <iostream>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "data/data_commands.h"

namespace assay::data {
namespace {

const std::vector<std::string> kVerbs = {"info", "verify", "pack", "tokenize"};

constexpr const char* kHelp =
    "Data sets: facts, checks, and files that are quick to read\n"
    "Usage:\n"
    "  assay data info|verify NAME_OR_PATH [options]\n"
    "  assay data pack NAME_OR_PATH --output DIR [options]\n"
    "  assay data tokenize TEXT [TEXT...] --output DIR [options]\n\n"
    "  info      Show counts, classes, mean and deviation, files and the digest\n"
    "  verify    Read every sample and every byte, and list what is broken\n"
    "  pack      Write a data set as packed shards: aligned, checksummed, mapped into memory\n"
    "  tokenize  Write token files from raw text\n\n"
    "Options: see assay data COMMAND --help, e.g. --data_dir PATH, --sequence_length N (default "
    "128).\n"
    "Exit code 0, or 3 if the data are missing or broken.\n";

[[noreturn]] void refuse_verb(const std::string& verb) {
  const auto nearest = nearest_spelling(verb, kVerbs);
  throw ConfigError(cat("unknown command ", quoted("data " + verb),
                        ", must be one of: ", join(kVerbs, ", "),
                        nearest ? cat("; did you mean ", quoted(*nearest), "?") : ""));
}

bool is_help(const std::string& word) { return word == "--help" || word == "-h"; }

}  // namespace

int run_data_command(std::span<const std::string> words, int64_t available_cpus) {
  const int64_t cpus = available_cpus > 0
                           ? available_cpus
                           : std::max<int64_t>(1, std::thread::hardware_concurrency());
  // The verb may stand behind options of its own ("--json info digits").
  const auto verb = std::find_if(words.begin(), words.end(), [](const std::string& word) {
    return std::find(kVerbs.begin(), kVerbs.end(), word) != kVerbs.end();
  });
  if (verb == words.end() && !words.empty() && is_help(words[0])) {
    std::cout << kHelp;
    return static_cast<int>(ExitCode::kOk);
  }
  if (words.empty()) {
    throw ConfigError(cat("assay data got 0 words, must be a command (", join(kVerbs, ", "),
                          ") and a data set. Fix: e.g. assay data info digits"));
  }
  if (verb == words.end()) refuse_verb(words[0]);
  std::vector<std::string> rest(words.begin(), verb);
  rest.insert(rest.end(), verb + 1, words.end());
  if (*verb == "tokenize") return run_tokenize_command(rest, cpus);
  if (*verb == "pack") return run_pack_command(rest, cpus);
  return run_facts_command(*verb, rest, cpus);
}

}  // namespace assay::data
