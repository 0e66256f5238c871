// One source of settings (a CONFIG.json, or the command line) on its way into a RunConfig: what it
// sets, and everything that is wrong with it, collected rather than thrown at the first.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "trainer/config/fields.h"

namespace assay::config {

struct Violations {
  std::vector<std::string> lines;
  std::set<std::string> broken_keys;  // fields without a usable value
  bool has_unknown_key = false;       // then combinations of values cannot be judged
};

// Where a setting was written: "option --lr", "argument lr=0.1", "configs/x.json".
struct Place {
  std::string text;        // as above
  bool is_option = false;  // hints then name options, otherwise keys
};

// Main thread only. Settings given twice within one layer must agree; later layers win over
// earlier ones.
class Layer {
 public:
  explicit Layer(Violations& violations) : violations_(violations) {}

  // `name` as the user wrote it; resolved to a field, a switch, or a violation.
  void set_text(std::string_view name, std::string_view text, const Place& place);
  void set_json(std::string_view name, const nlohmann::json& json, const Place& place);

  void report(std::string line) { violations_.lines.push_back(std::move(line)); }
  // Says that the name is not known (or belongs to a later release).
  void report_unknown(std::string_view name, const Place& place);

  // Writes the layer into `config` and adds the keys that it set to `given`.
  void apply(RunConfig* config, std::set<std::string>* given);

 private:
  struct Assignment {
    const Field* field;
    Value value;
    std::string place;
  };
  struct Off {  // --no-bf16
    const Switch* choice;
    std::string place;
  };
  void add(const Field& field, Value value, const std::string& place);
  void add_bad_value(const Field& field, const std::string& got, std::string_view raw,
                     const std::string& place);
  void add_switch(const Switch& choice, bool is_on, const std::string& place);
  const Assignment* find(std::string_view key) const;

  Violations& violations_;
  std::vector<Assignment> assignments_;
  std::vector<Off> offs_;
};

// The members of a JSON object as settings: flat names, dotted names, and sections.
void set_from_object(Layer& layer, const nlohmann::json& object, const std::string& origin,
                     std::string_view section = {});

// A whole CONFIG.json. Throws ConfigError if it is no JSON object.
void set_from_file(Layer& layer, const std::string& path);

// What the words after "train" say. `layer` takes the settings.
struct CommandLine {
  std::string config_path;  // empty: none
  bool is_help = false;
  bool is_print_config = false;
};
CommandLine set_from_words(Layer& layer, std::span<const std::string> words);

// Violations of single values and of combinations in `config`, leaving out every rule that needs
// one of `broken_keys`.
std::vector<std::string> violations_of(const RunConfig& config,
                                       const std::set<std::string>& broken_keys);

}  // namespace assay::config
