#include "data/data_command.h"

#include <algorithm>
#include <cmath>
#include <iostream>

#include <cxxopts.hpp>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "data/dataset.h"
#include "data/survey.h"

namespace assay::data {
namespace {

const std::vector<std::string> kCommands = {"info", "verify"};
const std::vector<std::string> kOptions = {"data_dir", "help", "json", "sequence_length"};

cxxopts::Options make_options() {
  cxxopts::Options options(
      "assay data",
      "Facts about a data set. `info` shows them; `verify` reads every sample and checks it.\n"
      "Exit code 0, or 3 if the data are missing or broken.\n");
  options.custom_help("info|verify NAME_OR_PATH [options]");
  options.positional_help("");
  auto data = options.add_options("Data");
  data("data_dir", "folder or file of the data set (default: embedded, or the system's package)",
       cxxopts::value<std::string>()->default_value(""), "PATH");
  data("sequence_length", "tokens a sample, for a text",
       cxxopts::value<std::string>()->default_value("128"), "N");
  auto output = options.add_options("Output");
  output("json", "print JSON instead of text (default: false)");
  output("h,help", "show this text");
  options.add_options()("words", "", cxxopts::value<std::vector<std::string>>());
  options.parse_positional({"words"});
  return options;
}

// "--data-dir=x" -> "--data_dir=x"; refuses what is no option of ours.
std::string checked_word(const std::string& word) {
  if (!word.starts_with("--") || word.size() == 2) return word;
  const size_t end = std::min(word.find('='), word.size());
  std::string name = word.substr(2, end - 2);
  std::replace(name.begin(), name.end(), '-', '_');
  if (std::find(kOptions.begin(), kOptions.end(), name) == kOptions.end()) {
    const auto nearest = nearest_spelling(name, kOptions);
    throw ConfigError(cat("unknown option ", quoted("--" + name), " of assay data",
                          nearest ? cat("; did you mean ", quoted("--" + *nearest), "?") : "",
                          " Fix: see assay data --help"));
  }
  return cat("--", name, word.substr(end));
}

struct DataCommand {
  std::string verb;
  std::string target;
  std::string directory;
  int64_t sequence_length = 0;
  bool is_json = false;
  bool is_help = false;
};

void check_verb(const std::string& verb) {
  if (std::find(kCommands.begin(), kCommands.end(), verb) != kCommands.end()) return;
  if (verb == "pack" || verb == "tokenize") {
    throw ConfigError(cat("assay data ", verb,
                          " is not in this release (0.1). Fix: use the data sets that "
                          "`assay data info --help` names"));
  }
  const auto nearest = nearest_spelling(verb, kCommands);
  throw ConfigError(cat("unknown command ", quoted("data " + verb),
                        ", must be one of: ", join(kCommands, ", "),
                        nearest ? cat("; did you mean ", quoted(*nearest), "?") : ""));
}

DataCommand parse_words(std::span<const std::string> words) {
  std::vector<std::string> checked = {"assay data"};
  for (const std::string& word : words) checked.push_back(checked_word(word));
  std::vector<const char*> arguments;
  for (const std::string& word : checked) arguments.push_back(word.c_str());
  DataCommand command;
  std::vector<std::string> positional;
  std::string length_text;
  try {
    cxxopts::Options options = make_options();
    const auto parsed = options.parse(static_cast<int>(arguments.size()), arguments.data());
    command.is_help = parsed.count("help") > 0;
    command.is_json = parsed.count("json") > 0 && parsed["json"].as<bool>();
    command.directory = parsed["data_dir"].as<std::string>();
    length_text = parsed["sequence_length"].as<std::string>();
    if (parsed.count("words") > 0) positional = parsed["words"].as<std::vector<std::string>>();
  } catch (const cxxopts::exceptions::exception& error) {
    throw ConfigError(cat("assay data: ", error.what(), ". Fix: see assay data --help"));
  }
  if (command.is_help) return command;
  const std::optional<int64_t> length = parse_int64(length_text);
  if (!length) {
    throw ConfigError(cat("--sequence_length is ", quoted(length_text),
                          ", must be a whole number"
                          " >= 1. Fix: --sequence_length 128"));
  }
  command.sequence_length = *length;
  if (!positional.empty()) check_verb(positional[0]);
  if (positional.size() != 2) {
    throw ConfigError(cat("assay data got ", positional.size(),
                          " words, must be 2: info or verify, then a data set's name or path. "
                          "Fix: e.g. assay data info digits"));
  }
  command.verb = positional[0];
  command.target = positional[1];
  return command;
}

bool has_ending(const std::vector<std::string>& names, std::string_view part) {
  return std::any_of(names.begin(), names.end(), [part](const std::string& name) {
    return name.find(part) != std::string::npos;
  });
}

// A name as open_data knows it, or a path whose content says which data set it is.
DataRequest make_request(const DataCommand& command) {
  DataRequest request;
  request.name = command.target;
  request.directory = command.directory;
  request.sequence_length = command.sequence_length;
  request.image_shape = {1, 28, 28};
  const std::span<const std::string_view> names = dataset_names();
  if (std::find(names.begin(), names.end(), command.target) != names.end()) return request;
  if (!path_exists(command.target)) return request;  // open_data says which names there are
  if (!command.directory.empty()) {
    throw ConfigError(cat("assay data got the path ", quoted(command.target), " and --data_dir ",
                          quoted(command.directory), ", must be one of them. Fix: drop one"));
  }
  request.directory = command.target;
  if (!is_directory(command.target)) {
    request.name = command.target.ends_with(".txt") ? "text" : "mnist";
    return request;
  }
  std::vector<std::string> entries;
  try {
    entries = list_directory(command.target);
  } catch (const FileError& error) {
    throw DataError(cat("assay data: ", error.what(), ". Fix: check the path"));
  }
  const bool is_idx =
      has_ending(entries, "-ubyte") || has_ending(entries, "MNIST") || has_ending(entries, "raw");
  request.name = has_ending(entries, "FashionMNIST") ? "fashion_mnist" : is_idx ? "mnist" : "text";
  return request;
}

nlohmann::ordered_json split_json(const SplitSurvey& survey) {
  nlohmann::ordered_json targets = nlohmann::ordered_json::object();
  for (const auto& [target, count] : survey.targets) targets[std::to_string(target)] = count;
  nlohmann::ordered_json json;
  json["samples"] = survey.samples;
  json["targets"] = std::move(targets);
  json["measured_mean"] = survey.mean;
  json["measured_stddev"] = survey.stddev;
  return json;
}

struct Surveys {
  SplitSurvey train;
  SplitSurvey eval;
};

void print_json(const OpenedData& data, const Surveys& surveys, bool is_verified) {
  const SampleSpec& spec = data.train->spec();
  nlohmann::ordered_json json;
  json["name"] = data.name;
  json["digest"] = data.digest;
  json["verified"] = is_verified;
  json["feature_type"] = spec.feature_type == FeatureType::kUint8 ? "uint8" : "int64";
  json["feature_shape"] = spec.feature_shape;
  json["targets_per_sample"] = spec.targets_per_sample;
  json["num_classes"] = spec.num_classes;
  json["mean"] = spec.mean;
  json["stddev"] = spec.stddev;
  json["train"] = split_json(surveys.train);
  json["eval"] = split_json(surveys.eval);
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
  if (survey.targets.size() > kMostShown) {
    std::cout << ", " << survey.targets.size() << " different targets";
  } else if (!survey.targets.empty()) {
    std::cout << "; targets";
    for (const auto& [target, count] : survey.targets) std::cout << " " << target << ":" << count;
  }
  if (!survey.mean.empty()) {
    std::cout << "; measured mean " << rounded_text(survey.mean) << ", stddev "
              << rounded_text(survey.stddev);
  }
  std::cout << "\n";
}

void print_text(const OpenedData& data, const Surveys& surveys) {
  const SampleSpec& spec = data.train->spec();
  std::cout << "data set  " << data.name << "\n";
  print_split("train     ", surveys.train);
  print_split("eval      ", surveys.eval);
  std::cout << "features  " << (spec.feature_type == FeatureType::kUint8 ? "uint8 " : "int64 ")
            << numbers_text(spec.feature_shape, " x ") << "\n"
            << "targets   " << spec.targets_per_sample << " a sample, in [0, "
            << spec.num_classes - 1 << "]\n";
  if (!spec.mean.empty()) {
    std::cout << "scaling   mean " << numbers_text(spec.mean, ", ") << ", stddev "
              << numbers_text(spec.stddev, ", ") << " (of x / 255)\n";
  }
  for (const SourceFile& file : data.files) {
    std::cout << "file      " << file.path << ", " << file.bytes << " bytes, sha256 " << file.sha256
              << "\n";
  }
  std::cout << "digest    " << data.digest << "\n";
}

}  // namespace

int run_data_command(std::span<const std::string> words) {
  const DataCommand command = parse_words(words);
  if (command.is_help) {
    std::cout << make_options().help({"Data", "Output"});
    return static_cast<int>(ExitCode::kOk);
  }
  const OpenedData data = open_data(make_request(command));
  const Surveys surveys{survey_split(*data.train, "train"), survey_split(*data.eval, "eval")};
  const bool is_verify = command.verb == "verify";
  if (command.is_json) {
    print_json(data, surveys, is_verify);
    return static_cast<int>(ExitCode::kOk);
  }
  print_text(data, surveys);
  if (is_verify) {
    std::cout << "verified  every one of " << surveys.train.samples + surveys.eval.samples
              << " samples was read and lies in its range\n";
  }
  return static_cast<int>(ExitCode::kOk);
}

}  // namespace assay::data
