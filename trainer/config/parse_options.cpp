// The words after "train": options, key=value settings, and the path of CONFIG.json.
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/text.h"
#include "trainer/config/later_release.h"
#include "trainer/config/layer.h"
#include "trainer/config/values.h"

namespace assay::config {
namespace {

bool is_true_or_false(std::string_view text) {
  return text == "true" || text == "false" || text == "True" || text == "False";
}

// An option takes a value unless it is a yes-or-no one.
enum class OptionKind { kUnknown, kYesNo, kValue };

OptionKind kind_of(const std::string& normal) {
  if (find_switch(normal) != nullptr) return OptionKind::kYesNo;
  const Field* field = find_field(normal);
  if (field == nullptr) return OptionKind::kUnknown;
  return field->type == FieldType::kBool ? OptionKind::kYesNo : OptionKind::kValue;
}

// Walks over the words once. Main thread only.
class WordReader {
 public:
  WordReader(Layer& layer, std::span<const std::string> words) : layer_(layer), words_(words) {}

  CommandLine read() {
    while (next_ < words_.size()) {
      const std::string& word = words_[next_++];
      if (word == "-h") {
        line_.is_help = true;
      } else if (word.starts_with("--")) {
        read_option(word);
      } else if (word.size() > 1 && word.front() == '-') {
        layer_.report(cat("unknown option ", quoted(word), ", options start with two hyphens",
                          spelling_hint(word.substr(1), true)));
      } else if (word.find('=') != std::string::npos) {
        read_setting(word);
      } else {
        read_path(word);
      }
    }
    return line_;
  }

 private:
  void read_option(const std::string& word) {
    const size_t equals = word.find('=');
    const std::string name = word.substr(2, equals == std::string::npos ? equals : equals - 2);
    const bool has_value = equals != std::string::npos;
    const std::string value = has_value ? word.substr(equals + 1) : std::string();
    const std::string normal = normalized_name(name);
    const Place place{.text = cat("option --", name), .is_option = true};
    if (normal == "help" || normal == "print_config") {
      if (has_value) {
        return layer_.report(
            cat("--", name, " takes no value, got ", shown_word(value), ". Fix: write --", name));
      }
      (normal == "help" ? line_.is_help : line_.is_print_config) = true;
      return;
    }
    switch (kind_of(normal)) {
      case OptionKind::kYesNo:
        return read_yes_no(name, has_value, value, place);
      case OptionKind::kValue:
        return read_valued(name, has_value, value, place);
      case OptionKind::kUnknown:
        break;
    }
    if (normal.starts_with("no_") && kind_of(normal.substr(3)) == OptionKind::kYesNo) {
      if (!has_value) return layer_.set_text(normal.substr(3), "false", place);
      return layer_.report(cat("--", name, " takes no value, got ", shown_word(value),
                               ". Fix: write --", name, " or --", name.substr(3), "=false"));
    }
    read_unknown(normal, name, has_value, place);
  }

  void read_yes_no(const std::string& name, bool has_value, const std::string& value,
                   const Place& place) {
    if (has_value) return layer_.set_text(name, value, place);
    if (next_ < words_.size() && is_true_or_false(words_[next_])) {
      return layer_.set_text(name, words_[next_++], place);
    }
    layer_.set_text(name, "true", place);
  }

  void read_valued(const std::string& name, bool has_value, const std::string& value,
                   const Place& place) {
    if (has_value) return layer_.set_text(name, value, place);
    // "-0.1" is a value, "--bf16" is the next option.
    if (next_ < words_.size() && !words_[next_].starts_with("--")) {
      return layer_.set_text(name, words_[next_++], place);
    }
    const Field& field = *find_field(normalized_name(name));
    layer_.report(cat("--", name, " needs a value: ", expected_text(field), ". Fix: e.g. ",
                      example_usage(field)));
  }

  void read_unknown(const std::string& normal, const std::string& name, bool has_value,
                    const Place& place) {
    std::string known = normal;
    if (known.starts_with("no_") && find_later_option(known.substr(3)) != nullptr) {
      known = known.substr(3);
    }
    const LaterSetting* later = find_later_option(known);
    const bool eats_next = later != nullptr ? later->takes_value : true;
    layer_.report_unknown(later != nullptr ? known : name, place);
    // The value of an option that is not known must not be taken for CONFIG.json.
    if (!has_value && eats_next && next_ < words_.size() && !words_[next_].starts_with("--") &&
        words_[next_].find('=') == std::string::npos && !words_[next_].ends_with(".json")) {
      ++next_;
    }
  }

  // The value of a key=value word is JSON where it reads as such, otherwise text.
  void read_setting(const std::string& word) {
    const size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const std::string value = word.substr(equals + 1);
    const Place place{.text = cat("argument ", quoted(word))};
    const std::string normal = normalized_name(name);
    if (value.starts_with("{") && is_section(normal)) return read_section(normal, value, place);
    const Field* field = find_field(normal);
    if (field == nullptr && find_switch(normal) == nullptr) {
      const bool is_path = path_exists(word);
      layer_.report_unknown(name, place);
      if (is_path) {
        layer_.report(cat("the path ", quoted(word),
                          " holds '=' and is read as a setting. Fix: give "
                          "CONFIG.json a name without '='"));
      }
      return;
    }
    const nlohmann::json json = nlohmann::json::parse(value, nullptr, false);
    if (field != nullptr && field->type == FieldType::kText && !json.is_null() &&
        !json.is_string()) {
      return layer_.set_text(name, value, place);
    }
    layer_.set_json(name, json.is_discarded() ? nlohmann::json(value) : json, place);
  }

  void read_section(const std::string& section, const std::string& value, const Place& place) {
    try {
      set_from_object(layer_, parse_json(value, place.text), place.text, section);
    } catch (const ConfigError& error) {  // joins the other violations
      layer_.report(error.what());
    }
  }

  void read_path(const std::string& word) {
    if (has_path_ && word != line_.config_path) {
      return layer_.report(cat("CONFIG.json is given twice: ", quoted(line_.config_path), " and ",
                               quoted(word),
                               ". Fix: keep one (options start with --, settings are "
                               "key=value)"));
    }
    has_path_ = true;
    line_.config_path = word;
    if (word.empty()) {
      layer_.report("CONFIG.json is \"\", expected the path of a file. Fix: leave the word out");
    }
  }

  Layer& layer_;
  std::span<const std::string> words_;
  size_t next_ = 0;
  bool has_path_ = false;
  CommandLine line_;
};

}  // namespace

CommandLine set_from_words(Layer& layer, std::span<const std::string> words) {
  return WordReader(layer, words).read();
}

}  // namespace assay::config
