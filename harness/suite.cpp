#include "harness/suite.h"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "base/digest.h"
#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "harness/suites/embedded.h"

namespace assay::harness {
namespace {

using Json = nlohmann::json;

constexpr double kLargestSize = 1e9;  // a guard against a slip of the keyboard, not a limit of ours

// Reads one suite and gathers everything that is wrong with it.
class SuiteParser {
 public:
  SuiteParser(std::span<const ScenarioNeeds> known) : known_(known) {}

  Suite parse(const Json& root) {
    Suite suite;
    if (!check_keys(root, "",
                    {"schema_version", "name", "description", "seed", "stall_limit_seconds",
                     "config_stall_limit_seconds", "workloads", "scenarios"})) {
      return suite;
    }
    if (number(root, "", "schema_version", 1, 1) != 1) return suite;
    suite.name = text(root, "", "name");
    suite.description = text(root, "", "description");
    suite.seed = static_cast<uint64_t>(number(root, "", "seed", 0, kLargestSize));
    suite.stall_limit_seconds = number(root, "", "stall_limit_seconds", 1, kLargestSize);
    suite.config_stall_limit_seconds =
        number(root, "", "config_stall_limit_seconds", 1, kLargestSize);
    if (const Json* workloads = member(root, "", "workloads", Json::value_t::object)) {
      for (const auto& [name, value] : workloads->items()) add_workload(name, value, suite);
    }
    if (const Json* scenarios = member(root, "", "scenarios", Json::value_t::array)) {
      for (size_t i = 0; i < scenarios->size(); ++i) {
        add_scenario((*scenarios)[i], cat("scenarios[", i, "]"), suite);
      }
      if (scenarios->empty()) problem("scenarios", "is empty, must name at least one");
    }
    return suite;
  }

  const std::vector<std::string>& problems() const { return problems_; }

 private:
  static std::string at(const std::string& place, const std::string& key) {
    return place.empty() ? key : cat(place, ".", key);
  }
  void problem(const std::string& where, const std::string& what) {
    problems_.push_back(cat(where, " ", what));
  }

  // True if `json` is an object; names every key that is not in `allowed`.
  bool check_keys(const Json& json, const std::string& place,
                  const std::vector<std::string>& allowed) {
    if (!json.is_object()) {
      problem(place.empty() ? "the suite" : place, cat("is ", json.dump(), ", must be an object"));
      return false;
    }
    for (const auto& [key, value] : json.items()) {
      if (std::find(allowed.begin(), allowed.end(), key) != allowed.end()) continue;
      const auto near = nearest_spelling(key, allowed);
      problem(assay::quoted(at(place, key)),
              near ? cat("is unknown; did you mean ", assay::quoted(at(place, *near)), "?")
                   : cat("is unknown; known are ", join(allowed, ", ")));
    }
    return true;
  }

  const Json* member(const Json& json, const std::string& place, const std::string& key,
                     Json::value_t type) {
    const auto found = json.find(key);
    if (found == json.end()) {
      problem(at(place, key), "is missing");
      return nullptr;
    }
    const bool is_right =
        found->type() == type || (type == Json::value_t::number_float && found->is_number());
    if (!is_right) {
      problem(at(place, key), cat("is ", found->dump(), ", must be ", Json(type).type_name()));
      return nullptr;
    }
    return &*found;
  }

  double number(const Json& json, const std::string& place, const std::string& key, double low,
                double high) {
    const Json* value = member(json, place, key, Json::value_t::number_float);
    if (value == nullptr) return low;
    const double got = value->get<double>();
    if (std::isfinite(got) && got >= low && got <= high) return got;
    problem(at(place, key), cat("is ", got, ", must lie in [", low, ", ", high, "]"));
    return low;
  }

  std::string text(const Json& json, const std::string& place, const std::string& key) {
    const Json* value = member(json, place, key, Json::value_t::string);
    if (value == nullptr) return "";
    if (value->get<std::string>().empty()) problem(at(place, key), "is empty");
    return value->get<std::string>();
  }

  bool flag(const Json& json, const std::string& place, const std::string& key) {
    const Json* value = member(json, place, key, Json::value_t::boolean);
    return value == nullptr || value->get<bool>();
  }

  std::vector<std::string> words(const Json& json, const std::string& place,
                                 const std::string& key) {
    std::vector<std::string> result;
    const Json* value = member(json, place, key, Json::value_t::array);
    if (value == nullptr) return result;
    for (const Json& word : *value) {
      if (word.is_string()) {
        result.push_back(word.get<std::string>());
      } else {
        problem(at(place, key), cat("holds ", word.dump(), ", must hold strings"));
      }
    }
    return result;
  }

  void add_workload(const std::string& name, const Json& json, Suite& suite) {
    const std::string place = cat("workloads.", name);
    if (!check_keys(json, place, {"options", "train_samples", "eval_samples"})) return;
    Workload workload;
    workload.name = name;
    workload.options = words(json, place, "options");
    workload.train_samples =
        static_cast<int64_t>(number(json, place, "train_samples", 0, kLargestSize));
    workload.eval_samples =
        static_cast<int64_t>(number(json, place, "eval_samples", 0, kLargestSize));
    suite.workloads.push_back(workload);
  }

  const ScenarioNeeds* needs_of(const std::string& name, const std::string& place) {
    std::vector<std::string> names;
    for (const ScenarioNeeds& needs : known_) {
      if (needs.name == name) return &needs;
      names.push_back(needs.name);
    }
    const auto near = nearest_spelling(name, names);
    problem(at(place, "name"), cat("is ", assay::quoted(name),
                                   near ? cat("; did you mean ", assay::quoted(*near), "?")
                                        : cat(", must be one of ", join(names, ", "))));
    return nullptr;
  }

  void add_scenario(const Json& json, const std::string& place, Suite& suite) {
    if (!check_keys(json, place,
                    {"name", "required", "expected_seconds", "sizes", "lists", "checks"})) {
      return;
    }
    ScenarioSettings settings;
    settings.name = text(json, place, "name");
    const ScenarioNeeds* needs = needs_of(settings.name, place);
    if (needs == nullptr) return;
    if (find_settings(suite, settings.name) != nullptr) problem(place, "names a scenario again");
    settings.is_required = flag(json, place, "required");
    settings.expected_seconds = number(json, place, "expected_seconds", 0.1, kLargestSize);
    const std::string named = settings.name;
    if (const Json* sizes = member(json, named, "sizes", Json::value_t::object)) {
      check_keys(*sizes, cat(named, ".sizes"), needs->sizes);
      for (const std::string& size : needs->sizes) {
        settings.sizes[size] = number(*sizes, cat(named, ".sizes"), size, 0, kLargestSize);
      }
    }
    if (const Json* lists = member(json, named, "lists", Json::value_t::object)) {
      check_keys(*lists, cat(named, ".lists"), needs->lists);
      for (const std::string& list : needs->lists) {
        settings.lists[list] = words(*lists, cat(named, ".lists"), list);
      }
    }
    if (const Json* checks = member(json, named, "checks", Json::value_t::object)) {
      check_keys(*checks, cat(named, ".checks"), needs->checks);
      for (const std::string& check : needs->checks) add_check(*checks, check, *needs, settings);
    }
    suite.scenarios.push_back(settings);
  }

  void add_check(const Json& checks, const std::string& name, const ScenarioNeeds& needs,
                 ScenarioSettings& settings) {
    const std::string place = cat(needs.name, ".checks");
    const Json* json = member(checks, place, name, Json::value_t::object);
    if (json == nullptr) return;
    const bool has_threshold =
        std::find(needs.checks_with_threshold.begin(), needs.checks_with_threshold.end(), name) !=
        needs.checks_with_threshold.end();
    std::vector<std::string> allowed = {"required", "reason"};
    if (has_threshold) allowed.push_back("threshold");
    const std::string check_place = at(place, name);
    check_keys(*json, check_place, allowed);
    CheckSetting setting;
    setting.is_required = flag(*json, check_place, "required");
    if (has_threshold) setting.threshold = number(*json, check_place, "threshold", 0, 1e18);
    // A threshold and a demotion to advisory need their reason; a plain required check does not.
    if (has_threshold || !setting.is_required || json->contains("reason")) {
      setting.reason = text(*json, check_place, "reason");
    }
    settings.checks[name] = setting;
  }

  std::span<const ScenarioNeeds> known_;
  std::vector<std::string> problems_;
};

}  // namespace

Suite parse_suite(std::string_view text, const std::string& origin,
                  std::span<const ScenarioNeeds> known) {
  JsonRules rules;
  rules.allow_comments = true;
  const Json root = parse_json(text, origin, rules);
  SuiteParser parser(known);
  Suite suite = parser.parse(root);
  if (!parser.problems().empty()) {
    throw ConfigError(cat("suite file ", origin, " is not usable: ", join(parser.problems(), "; "),
                          ". Fix: compare it with a built-in suite (harness/suites/quick.json)"));
  }
  suite.digest = sha256_hex(text);
  return suite;
}

const ScenarioSettings* find_settings(const Suite& suite, std::string_view scenario) {
  const auto found = std::find_if(suite.scenarios.begin(), suite.scenarios.end(),
                                  [&](const ScenarioSettings& s) { return s.name == scenario; });
  return found == suite.scenarios.end() ? nullptr : &*found;
}

const Workload& find_workload(const Suite& suite, std::string_view name) {
  std::vector<std::string> names;
  for (const Workload& workload : suite.workloads) {
    if (workload.name == name) return workload;
    names.push_back(workload.name);
  }
  throw ConfigError(cat("suite ", suite.name, " has no workload ", assay::quoted(name), "; it has ",
                        join(names, ", ")));
}

std::vector<std::string> embedded_suite_names() {
  std::vector<std::string> names;
  for (const suites::EmbeddedSuite& suite : suites::embedded_suites()) {
    names.emplace_back(suite.name);
  }
  return names;
}

std::string_view embedded_suite_text(std::string_view name) {
  for (const suites::EmbeddedSuite& suite : suites::embedded_suites()) {
    if (suite.name == name) return suite.text;
  }
  const std::vector<std::string> names = embedded_suite_names();
  const auto near = nearest_spelling(name, names);
  throw ConfigError(cat("there is no suite ", assay::quoted(name),
                        near ? cat("; did you mean ", assay::quoted(*near), "?")
                             : cat("; known are ", join(names, ", ")),
                        ". Fix: --suite NAME, or --suite-file PATH for one of your own"));
}

}  // namespace assay::harness
