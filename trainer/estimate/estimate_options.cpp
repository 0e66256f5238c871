#include "trainer/estimate/estimate_options.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "trainer/config/config_io.h"

namespace assay::estimate {
namespace {

constexpr int64_t kMostRanks = 1 << 20;
constexpr int64_t kMostTokens = 1 << 30;

struct Option {
  std::string_view name;   // with '-'
  std::string_view value;  // what the value is called; empty: yes or no
  std::string_view group;
  std::string_view help;
  std::string_view default_text;
};

constexpr std::string_view kRanks = "Several ranks";
constexpr std::string_view kMeasured = "From measurements";
constexpr std::string_view kServing = "Serving (GPT models)";
constexpr std::string_view kOutput = "Output";

constexpr std::array<Option, 17> kOptions = {{
    {"world", "LIST", kRanks,
     "Predict step time and efficiency at these numbers of ranks, e.g. 1,2,4,8; may be repeated",
     "none"},
    {"dry-run-rank", "R", kRanks,
     "Take a few real steps here, on the run's data, in the role of rank R (from 0) of the one "
     "--world N, with collectives that return at once: its samples, memory, and what it reduces",
     "none"},
    {"ranks-per-node", "N", kRanks, "Ranks on one host; more than that go over the network", "8"},
    {"link-gb-per-s", "X", kRanks, "Bandwidth between GPUs of a host, of one rank, each way",
     "the card's"},
    {"latency-us", "X", kRanks, "Latency of one message between GPUs of a host", "6.3"},
    {"inter-gb-per-s", "X", kRanks, "Bandwidth of a host's network, shared by its ranks, each way",
     "12.5"},
    {"inter-latency-us", "X", kRanks, "Latency of one message between hosts", "20"},
    {"card", "NAME", kRanks, "Card whose bounds times are derived from, e.g. h200 or \"rtx 4090\"",
     "the GPU here, else h100"},
    {"step-ms", "X", kMeasured, "Measured time of a step on one rank",
     "the card's bound, which no run reaches"},
    {"deviation-ms", "X", kMeasured, "Standard deviation of that time, for waiting on stragglers",
     "0"},
    {"from-run", "DIR", kMeasured,
     "Take configuration, phases and deviation of the step from a run folder; options change the "
     "rest",
     "none"},
    {"all-reduce", "FILE", kMeasured,
     "Fit latency and bandwidth to lines {\"ranks\":4,\"bytes\":1048576,\"ms\":1.25}", "none"},
    {"context", "N", kServing, "Tokens that each request keeps in the cache",
     "the model's context length"},
    {"requests", "LIST", kServing, "Concurrent requests to show the cache for", "1,8,32,128"},
    {"json", "", kOutput, "Print JSON instead of the report", "false"},
    {"help", "", kOutput, "Print this text and end", "false"},
    {"h", "", kOutput, "", ""},
}};

std::string with_hyphens(std::string_view name) {
  std::string result(name);
  std::replace(result.begin(), result.end(), '_', '-');
  return result;
}

const Option* find_option(std::string_view name) {
  const auto found = std::find_if(kOptions.begin(), kOptions.end(),
                                  [&](const Option& option) { return option.name == name; });
  return found == kOptions.end() ? nullptr : &*found;
}

// "--world=2" -> {"world", "2"}; nothing if the word is no option.
struct OptionWord {
  std::string name;
  std::optional<std::string> value;
};
std::optional<OptionWord> option_word(std::string_view word) {
  if (word == "-h") return OptionWord{"h", std::nullopt};
  if (!word.starts_with("--")) return std::nullopt;
  const size_t equals = word.find('=');
  OptionWord option{with_hyphens(word.substr(2, equals == word.npos ? word.npos : equals - 2)), {}};
  if (equals != word.npos) option.value = std::string(word.substr(equals + 1));
  return option;
}

// Walks over the words once. Main thread only.
class OptionReader {
 public:
  explicit OptionReader(std::span<const std::string> words) : words_(words) {}

  EstimateOptions read() {
    for (; next_ < words_.size(); ++next_) {
      const std::optional<OptionWord> word = option_word(words_[next_]);
      const Option* option = word ? find_option(word->name) : nullptr;
      if (option == nullptr) {
        options_.train_words.push_back(words_[next_]);
      } else if (option->value.empty()) {
        set_switch(*word);
      } else if (word->value || next_ + 1 < words_.size()) {
        set_value(word->name, word->value ? *word->value : words_[++next_]);
      } else {
        problem(cat("--", word->name, " needs a value: ", option->value));
      }
    }
    std::sort(options_.worlds.begin(), options_.worlds.end());
    options_.worlds.erase(std::unique(options_.worlds.begin(), options_.worlds.end()),
                          options_.worlds.end());
    if (options_.dry_run_rank) {
      check_dry_run();
    } else if (options_.worlds.empty()) {
      check_no_world();
    }
    if (!options_.is_help && !problems_.empty()) {
      throw ConfigError(cat(join(problems_, "; "), ". Fix: see assay estimate --help"));
    }
    return options_;
  }

 private:
  void problem(std::string text) { problems_.push_back(std::move(text)); }

  void check_no_world() {
    for (const std::string& name : given_) {
      const std::string_view group = find_option(name)->group;
      if (name == "world" || name == "from-run" || (group != kRanks && group != kMeasured))
        continue;
      problem(cat("--", name, " says nothing without --world, e.g. --world 1,2,4,8"));
    }
  }

  // What is predicted is not what is run.
  void check_dry_run() {
    if (options_.worlds.size() != 1) {
      problem("--dry-run-rank needs one --world, e.g. --world 8 --dry-run-rank 7");
    } else if (*options_.dry_run_rank >= options_.worlds.front()) {
      problem(cat("--dry-run-rank is ", *options_.dry_run_rank, ", must be from 0 to ",
                  options_.worlds.front() - 1, " for --world ", options_.worlds.front()));
    }
    for (const std::string& name : given_) {
      if (name == "world" || name == "dry-run-rank") continue;
      problem(cat("--", name, " is for predictions, --dry-run-rank runs: leave one out"));
    }
  }

  void set_switch(const OptionWord& word) {
    const bool is_off = word.value == "false";
    if (word.value && *word.value != "true" && !is_off) {
      return problem(cat("--", word.name, " is ", quoted(*word.value), ", must be true or false"));
    }
    (word.name == "json" ? options_.is_json : options_.is_help) = !is_off;
  }

  void set_value(const std::string& name, const std::string& text) {
    given_.insert(name);
    if (name == "world") return set_counts(name, text, kMostRanks, options_.worlds);
    if (name == "requests") {
      if (!std::exchange(has_requests_, true)) options_.requests.clear();
      return set_counts(name, text, kMostRanks, options_.requests);
    }
    if (name == "ranks-per-node") return set_count(name, text, kMostRanks, options_.ranks_per_node);
    if (name == "dry-run-rank") return set_rank(text);
    if (name == "context") return set_count(name, text, kMostTokens, options_.context);
    if (name == "card") return set_text(name, text, options_.card);
    if (name == "from-run") return set_text(name, text, options_.from_run);
    if (name == "all-reduce") return set_text(name, text, options_.all_reduce_file);
    if (name == "link-gb-per-s") return set_number(name, text, options_.link_gb_per_s);
    if (name == "inter-gb-per-s") return set_number(name, text, options_.inter_gb_per_s);
    if (name == "step-ms") return set_number(name, text, options_.step_ms);
    if (name == "latency-us") return set_number(name, text, options_.latency_us, true);
    if (name == "inter-latency-us") return set_number(name, text, options_.inter_latency_us, true);
    if (name == "deviation-ms") return set_number(name, text, options_.deviation_ms, true);
    throw InternalError(cat("option --", name, " is in the table and not read"));
  }

  std::optional<int64_t> count_of(const std::string& name, const std::string& text, int64_t most) {
    const std::optional<int64_t> count = parse_int64(trimmed(text));
    if (count && *count >= 1 && *count <= most) return count;
    problem(cat("--", name, " is ", quoted(text), ", must be a whole number from 1 to ", most));
    return std::nullopt;
  }

  void set_counts(const std::string& name, const std::string& text, int64_t most,
                  std::vector<int64_t>& list) {
    for (const std::string& part : split(text, ',')) {
      if (const std::optional<int64_t> count = count_of(name, part, most)) list.push_back(*count);
    }
  }

  void set_count(const std::string& name, const std::string& text, int64_t most,
                 std::optional<int64_t>& target) {
    if (target) return problem(cat("--", name, " is given twice"));
    target = count_of(name, text, most);
  }

  void set_rank(const std::string& text) {
    const std::optional<int64_t> rank = parse_int64(trimmed(text));
    if (options_.dry_run_rank) return problem("--dry-run-rank is given twice");
    options_.dry_run_rank = rank.value_or(0);
    if (rank && *rank >= 0 && *rank < kMostRanks) return;
    problem(cat("--dry-run-rank is ", quoted(text), ", must be a whole number from 0 to ",
                kMostRanks - 1));
  }

  void set_number(const std::string& name, const std::string& text, std::optional<double>& target,
                  bool may_be_zero = false) {
    const std::optional<double> number = parse_double(text);
    if (target) return problem(cat("--", name, " is given twice"));
    if (number && (*number > 0 || (may_be_zero && *number == 0))) {
      target = number;
    } else {
      problem(cat("--", name, " is ", quoted(text), ", must be a number ",
                  may_be_zero ? "from 0 on" : "above 0"));
    }
  }

  void set_text(const std::string& name, const std::string& text, std::string& target) {
    if (!target.empty()) return problem(cat("--", name, " is given twice"));
    if (text.empty()) return problem(cat("--", name, " is empty"));
    target = text;
  }

  std::span<const std::string> words_;
  size_t next_ = 0;
  bool has_requests_ = false;
  std::set<std::string> given_;  // options with a value
  EstimateOptions options_;
  std::vector<std::string> problems_;
};

// Wraps between words at 98 columns, six spaces in.
std::string wrapped(const std::string& text) {
  constexpr size_t kWidth = 98;
  constexpr std::string_view kIndent = "      ";
  std::string out;
  std::string line(kIndent);
  for (const std::string& word : split(text, ' ')) {
    const bool is_first = line.size() == kIndent.size();
    if (!is_first && line.size() + 1 + word.size() > kWidth) {
      out += line + "\n";
      line = kIndent;
    } else if (!is_first) {
      line += ' ';
    }
    line += word;
  }
  return out + line + "\n";
}

}  // namespace

EstimateOptions parse_estimate_options(std::span<const std::string> words) {
  return OptionReader(words).read();
}

std::string estimate_help() {
  std::string text =
      "Usage: assay estimate [CONFIG.json] [options of assay train] [options] [key=value ...]\n"
      "\n"
      "Says what a run will need before it starts: parameters, memory by kind, arithmetic, the\n"
      "least time of a step, checkpoint room, which cards it fits and with which settings, and "
      "how\n"
      "it scales. The model's own code runs on shapes; nothing is trained and no GPU is used.\n"
      "Every option of assay train counts as it does there (assay train --help).\n"
      "Exit codes: 0 it fits on the device that is here, 6 it does not, 2 usage or "
      "configuration.\n";
  std::string_view group;
  for (const Option& option : kOptions) {
    if (option.help.empty()) continue;
    if (option.group != group) text += cat("\n", option.group, "\n");
    group = option.group;
    text += cat("  --", option.name, option.value.empty() ? "" : " ", option.value,
                option.name == "help" ? ", -h" : "", "\n",
                wrapped(cat(option.help, ". Default: ", option.default_text, ".")));
  }
  return text;
}

namespace {

// For a message about an option that the trainer does not know; empty if none of ours is near.
std::string own_spelling_hint(std::span<const std::string> train_words) {
  std::vector<std::string> names;
  for (const Option& option : kOptions) names.emplace_back(option.name);
  for (const std::string& word : train_words) {
    const std::optional<OptionWord> option = option_word(word);
    if (!option) continue;
    const std::optional<std::string> near = nearest_spelling(option->name, names);
    if (near) return cat("; or did you mean --", *near, " of assay estimate?");
  }
  return "";
}

}  // namespace

config::RunConfig parse_planned_run(std::span<const std::string> train_words,
                                    const config::RunConfig* base) {
  try {
    return config::parse_train_arguments(train_words, base).config;
  } catch (const ConfigError& error) {
    const std::string message = error.what();
    const bool is_unknown = message.find("unknown option") != std::string::npos;
    throw ConfigError(message + (is_unknown ? own_spelling_hint(train_words) : ""));
  }
}

}  // namespace assay::estimate
