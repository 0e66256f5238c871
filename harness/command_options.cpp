#include "harness/command_options.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/text.h"

namespace assay::harness {
namespace {

std::string with_hyphens(std::string_view name) {
  std::string result(name);
  std::replace(result.begin(), result.end(), '_', '-');
  return result;
}

class WordParser {
 public:
  WordParser(std::span<const OptionSpec> specs, std::span<const std::string> words)
      : specs_(specs), words_(words) {}

  CommandWords parse(size_t max_positionals) {
    for (; next_ < words_.size(); ++next_) {
      const std::string& word = words_[next_];
      if (word == "--help" || word == "-h") {
        parsed_.is_help = true;
      } else if (word.starts_with("--")) {
        option(word.substr(2));
      } else if (word.starts_with('-') && word.size() > 1) {
        problems_.push_back(cat(assay::quoted(word), " is no option; options begin with --"));
      } else if (parsed_.positionals.size() == max_positionals) {
        problems_.push_back(cat("unexpected word ", assay::quoted(word)));
      } else {
        parsed_.positionals.push_back(word);
      }
    }
    if (!parsed_.is_help && !problems_.empty()) {
      throw ConfigError(cat(join(problems_, "; "), ". Fix: --help lists every option"));
    }
    return parsed_;
  }

 private:
  const OptionSpec* find(std::string_view name) const {
    const auto found = std::find_if(specs_.begin(), specs_.end(),
                                    [&](const OptionSpec& spec) { return spec.name == name; });
    return found == specs_.end() ? nullptr : &*found;
  }

  void option(std::string_view text) {
    const size_t equals = text.find('=');
    std::string name = with_hyphens(text.substr(0, equals));
    std::optional<std::string> value;
    if (equals != std::string_view::npos) value = std::string(text.substr(equals + 1));
    const OptionSpec* spec = find(name);
    if (spec == nullptr && name.starts_with("no-") && !value) {
      spec = find(std::string_view(name).substr(3));
      if (spec != nullptr && spec->value.empty()) {
        name = name.substr(3);
        value = "false";
      } else {
        spec = nullptr;
      }
    }
    if (spec == nullptr) {
      unknown(name);
    } else if (spec->value.empty()) {
      flag(name, value.value_or("true"));
    } else if (value || next_ + 1 < words_.size()) {
      set(name, value ? *value : words_[++next_]);
    } else {
      problems_.push_back(cat("--", name, " needs a value: ", spec->value));
    }
  }

  void flag(const std::string& name, const std::string& value) {
    if (value == "true" || value == "false") {
      set(name, value);
    } else {
      problems_.push_back(cat("--", name, " is ", assay::quoted(value), ", must be true or false"));
    }
  }

  void set(const std::string& name, const std::string& value) {
    if (value.empty()) problems_.push_back(cat("--", name, " is empty"));
    if (!parsed_.values.emplace(name, value).second) {
      problems_.push_back(cat("--", name, " is given twice"));
    }
  }

  void unknown(const std::string& name) {
    std::vector<std::string> names = {"help"};
    for (const OptionSpec& spec : specs_) names.emplace_back(spec.name);
    const auto near = nearest_spelling(name, names);
    problems_.push_back(cat("unknown option ", assay::quoted("--" + name),
                            near ? cat("; did you mean --", *near, "?") : std::string()));
  }

  std::span<const OptionSpec> specs_;
  std::span<const std::string> words_;
  size_t next_ = 0;
  CommandWords parsed_;
  std::vector<std::string> problems_;
};

}  // namespace

std::string CommandWords::value_or(const std::string& name, const std::string& otherwise) const {
  const auto found = values.find(name);
  return found == values.end() ? otherwise : found->second;
}

CommandWords parse_command_words(std::span<const OptionSpec> specs,
                                 std::span<const std::string> words, size_t max_positionals) {
  return WordParser(specs, words).parse(max_positionals);
}

std::string command_help(std::string_view usage, std::string_view sentence,
                         std::span<const OptionSpec> specs) {
  std::string text = cat("usage: ", usage, "\n\n", sentence, "\n");
  std::string_view group;
  for (const OptionSpec& spec : specs) {
    if (spec.group != group) text += cat("\n", spec.group, ":\n");
    group = spec.group;
    std::string left = cat("  --", spec.name, spec.value.empty() ? "" : " ", spec.value);
    if (left.size() < 28) left.resize(28, ' ');
    text += cat(left, " ", spec.help, " [", spec.default_text, "]\n");
  }
  return text + "\n  --help                     this text\n";
}

}  // namespace assay::harness
