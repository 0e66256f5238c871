// `assay data info|verify`: facts about a data set, for people and as JSON. Prints to stdout,
// progress to stderr.
#include <algorithm>
#include <cmath>
#include <iostream>

#include <cxxopts.hpp>
#include <nlohmann/json.hpp>

#include "base/digest.h"
#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "data/command_words.h"
#include "data/data_commands.h"
#include "data/dataset.h"
#include "data/dataset_guess.h"
#include "data/survey.h"
#include "data/token_manifest.h"

namespace assay::data {
namespace {

const std::vector<std::string> kOptions = {"data_dir", "help",       "json",      "sequence_length",
                                           "threads",  "token_bits", "vocabulary"};

// `info` looks at so many samples of a split, evenly spread; `verify` at all.
constexpr int64_t kSamplesOfInfo = 10000;

cxxopts::Options make_options(const std::string& verb) {
  cxxopts::Options options(
      cat("assay data ", verb),
      "Facts about a data set. `info` shows them, from at most 10,000 samples a split; `verify` "
      "reads every\nsample and every byte, lists what is broken and hashes every file.\n"
      "Exit code 0, or 3 if the data are missing or broken.\n");
  options.custom_help("info|verify NAME_OR_PATH [options]");
  options.positional_help("");
  const auto text = [](const char* value) {
    return cxxopts::value<std::string>()->default_value(value);
  };
  auto data = options.add_options("Data");
  data("data_dir", "folder, file or pattern of the data set (default: embedded, or the system's)",
       text(""), "PATH");
  data("sequence_length", "tokens a sample, for a text and for tokens", text("128"), "N");
  data("token_bits", "width of tokens in files that do not say it themselves: 16 or 32", text("16"),
       "N");
  data("vocabulary", "ids of tokens must be below; 0: not checked", text("0"), "N");
  auto output = options.add_options("Output");
  output("threads", "0: the CPUs this process may use", text("0"), "N");
  output("json", "print JSON instead of text (default: false)");
  output("h,help", "show this text");
  options.add_options()("words", "", cxxopts::value<std::vector<std::string>>());
  options.parse_positional({"words"});
  return options;
}

struct FactsCommand {
  DataRequest request;
  bool is_verify = false;
  bool is_json = false;
  int64_t num_threads = 1;
};

FactsCommand read_command(const std::string& verb, const cxxopts::ParseResult& parsed,
                          int64_t cpus) {
  const auto text = [&parsed](const char* name) { return parsed[name].as<std::string>(); };
  FactsCommand command;
  command.is_verify = verb == "verify";
  command.is_json = parsed.count("json") > 0 && parsed["json"].as<bool>();
  command.num_threads = thread_count(text("threads"), cpus);
  std::vector<std::string> targets;
  if (parsed.count("words") > 0) targets = parsed["words"].as<std::vector<std::string>>();
  if (targets.size() != 1) {
    throw ConfigError(cat("assay data ", verb, " got ", targets.size(),
                          " words, must be 1: a data set's name or path. Fix: e.g. assay data ",
                          verb, " digits"));
  }
  command.request = guessed_request(targets[0], text("data_dir"));
  command.request.sequence_length =
      whole_number(text("sequence_length"), "sequence_length", {.low = 1, .high = 1 << 24});
  command.request.class_limit =
      whole_number(text("vocabulary"), "vocabulary", {.low = 0, .high = 1 << 24});
  if (parsed.count("token_bits") > 0) {
    check_choice(text("token_bits"), "token_bits", {"16", "32"});
    command.request.token_bits = parse_int64(text("token_bits"));
  }
  return command;
}

struct Facts {
  SplitSurvey train;
  SplitSurvey eval;
  int64_t manifest_files = 0;  // compared with a manifest beside them
};

nlohmann::ordered_json split_json(const SplitSurvey& survey) {
  nlohmann::ordered_json targets = nlohmann::ordered_json::object();
  for (const auto& [target, count] : survey.targets) targets[std::to_string(target)] = count;
  nlohmann::ordered_json json;
  json["samples"] = survey.samples;
  json["looked_at"] = survey.looked_at;
  json["targets"] = std::move(targets);
  json["measured_mean"] = survey.mean;
  json["measured_stddev"] = survey.stddev;
  json["num_broken"] = survey.num_broken;
  json["broken"] = nlohmann::ordered_json::array();
  for (const BrokenSample& sample : survey.broken) {
    json["broken"].push_back({{"id", sample.id}, {"error", sample.what}});
  }
  return json;
}

void print_json(const OpenedData& data, const Facts& facts, bool is_verify) {
  const SampleSpec& spec = data.train->spec();
  nlohmann::ordered_json json;
  json["name"] = data.name;
  json["digest"] = data.digest;
  json["verified"] = is_verify && facts.train.num_broken + facts.eval.num_broken == 0;
  json["feature_type"] = spec.feature_type == FeatureType::kUint8 ? "uint8" : "int64";
  json["feature_shape"] = spec.feature_shape;
  json["targets_per_sample"] = spec.targets_per_sample;
  json["num_classes"] = spec.num_classes;
  json["mean"] = spec.mean;
  json["stddev"] = spec.stddev;
  json["train"] = split_json(facts.train);
  json["eval"] = split_json(facts.eval);
  json["files"] = nlohmann::ordered_json::array();
  for (const SourceFile& file : data.files) {
    json["files"].push_back({{"path", file.path}, {"bytes", file.bytes}, {"sha256", file.sha256}});
  }
  // Paths need not be UTF-8; what is not becomes U+FFFD.
  std::cout << json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
}

template <class Number>
std::string numbers_text(const std::vector<Number>& numbers, const char* separator) {
  std::string text;
  for (const Number number : numbers) text += cat(text.empty() ? "" : separator, number);
  return text;
}

std::string rounded_text(const std::vector<double>& numbers) {
  std::vector<double> rounded;
  for (const double number : numbers) rounded.push_back(std::round(number * 1e4) / 1e4);
  return numbers_text(rounded, ", ");
}

void print_split(const char* name, const SplitSurvey& survey) {
  constexpr size_t kMostShown = 20;  // classes; a vocabulary is only counted
  std::cout << name << survey.samples << " samples";
  if (survey.looked_at < survey.samples) {
    std::cout << ", looked at " << survey.looked_at << " of them";
  }
  if (survey.targets.size() > kMostShown) {
    std::cout << ", " << survey.targets.size() << " different targets up to "
              << survey.targets.rbegin()->first;
  } else if (!survey.targets.empty()) {
    std::cout << "; targets";
    for (const auto& [target, count] : survey.targets) std::cout << " " << target << ":" << count;
  }
  if (!survey.mean.empty()) {
    std::cout << "; measured mean " << rounded_text(survey.mean) << ", stddev "
              << rounded_text(survey.stddev);
  }
  std::cout << "\n";
  for (const BrokenSample& sample : survey.broken) {
    std::cout << "broken    " << escaped(sample.what) << "\n";
  }
}

void print_text(const OpenedData& data, const Facts& facts, bool is_verify) {
  const SampleSpec& spec = data.train->spec();
  std::cout << "data set  " << data.name << "\n";
  print_split("train     ", facts.train);
  print_split("eval      ", facts.eval);
  std::cout << "features  " << (spec.feature_type == FeatureType::kUint8 ? "uint8 " : "int64 ")
            << numbers_text(spec.feature_shape, " x ") << "\n"
            << "targets   " << spec.targets_per_sample << " a sample, in [0, "
            << spec.num_classes - 1 << "]\n";
  if (!spec.mean.empty()) {
    std::cout << "scaling   mean " << numbers_text(spec.mean, ", ") << ", stddev "
              << numbers_text(spec.stddev, ", ") << " (of x / 255)\n";
  }
  for (const SourceFile& file : data.files) {
    std::cout << "file      " << escaped(file.path) << ", " << file.bytes << " bytes, ";
    if (file.sha256.empty()) std::cout << "not hashed (assay data verify does)\n";
    if (!file.sha256.empty()) std::cout << "sha256 " << file.sha256 << "\n";
  }
  std::cout << "digest    " << data.digest << "\n";
  const int64_t broken = facts.train.num_broken + facts.eval.num_broken;
  if (!is_verify || broken > 0) return;
  std::cout << "verified  every one of " << facts.train.samples + facts.eval.samples
            << " samples was read and lies in its range";
  if (facts.manifest_files > 0) {
    std::cout << "; " << facts.manifest_files << " files are as their manifest says";
  }
  std::cout << "\n";
}

Facts gather(const FactsCommand& command, OpenedData& data) {
  ProgressLine progress(cat("reading ", data.name));
  SurveyConfig config{.max_samples = command.is_verify ? 0 : kSamplesOfInfo,
                      .num_threads = command.num_threads,
                      .on_broken = command.is_verify ? OnBroken::kList : OnBroken::kThrow};
  config.on_progress = [&](uint64_t done, uint64_t total) { progress.show(done, total); };
  Facts facts{.train = survey_split(*data.train, "train", config),
              .eval = survey_split(*data.eval, "eval", config)};
  if (!command.is_verify) return facts;
  for (SourceFile& file : data.files) {
    if (file.sha256.empty()) file.sha256 = sha256_file_hex(file.path);
  }
  if (data.name == "tokens" && is_directory(command.request.directory)) {
    facts.manifest_files = check_token_manifest(command.request.directory, data.files);
  }
  return facts;
}

}  // namespace

int run_facts_command(const std::string& verb, std::span<const std::string> words, int64_t cpus) {
  cxxopts::Options options = make_options(verb);
  const auto parsed = parse_command_words(options, words, kOptions, verb);
  if (parsed.count("help") > 0) {
    std::cout << options.help({"Data", "Output"});
    return static_cast<int>(ExitCode::kOk);
  }
  const FactsCommand command = read_command(verb, parsed, cpus);
  OpenedData data = open_data(command.request);
  const Facts facts = gather(command, data);
  if (command.is_json) {
    print_json(data, facts, command.is_verify);
  } else {
    print_text(data, facts, command.is_verify);
  }
  const int64_t broken = facts.train.num_broken + facts.eval.num_broken;
  if (broken == 0) return static_cast<int>(ExitCode::kOk);
  throw DataError(cat("data set ", data.name, ": ", broken, " of ",
                      facts.train.samples + facts.eval.samples,
                      " samples are broken, the first ones are listed above. Fix: correct or "
                      "remove them"));
}

}  // namespace assay::data
