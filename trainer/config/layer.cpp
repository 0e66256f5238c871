#include "trainer/config/layer.h"

#include <utility>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "trainer/config/later_release.h"
#include "trainer/config/values.h"

namespace assay::config {
namespace {

std::string later_line(std::string_view what, const LaterSetting& later, const std::string& place) {
  return cat(what, " is not in this release (", kRelease, ") (", place, "). Fix: ", later.instead);
}

std::optional<bool> switch_state(const nlohmann::json& json) {
  if (!json.is_boolean()) return std::nullopt;
  return json.get<bool>();
}

std::optional<bool> switch_state(std::string_view text) {
  static const Field yes_or_no{.key = "", .type = FieldType::kBool};
  const std::optional<Value> value = value_from_text(yes_or_no, text);
  if (!value) return std::nullopt;
  return std::get<bool>(*value);
}

std::string bad_switch_line(std::string_view name, const std::string& got, const Place& place) {
  return cat(name, " is ", got, ", must be true or false (", place.text, "). Fix: write --", name,
             " or --no-", name);
}

}  // namespace

void Layer::set_text(std::string_view name, std::string_view text, const Place& place) {
  const std::string normal = normalized_name(name);
  if (const Switch* choice = find_switch(normal)) {
    const std::optional<bool> state = switch_state(text);
    if (state) return add_switch(*choice, *state, place.text);
    return report(bad_switch_line(choice->name, shown_word(text), place));
  }
  const Field* field = find_field(normal);
  if (field == nullptr) return report_unknown(name, place);
  std::optional<Value> value = value_from_text(*field, text);
  if (!value) return add_bad_value(*field, shown_word(text), text, place.text);
  add(*field, std::move(*value), place.text);
}

void Layer::set_json(std::string_view name, const nlohmann::json& json, const Place& place) {
  const std::string normal = normalized_name(name);
  if (const Switch* choice = find_switch(normal)) {
    const std::optional<bool> state = switch_state(json);
    if (state) return add_switch(*choice, *state, place.text);
    return report(bad_switch_line(choice->name, shown_json(json), place));
  }
  const Field* field = find_field(normal);
  if (field == nullptr) return report_unknown(name, place);
  std::optional<Value> value = value_from_json(*field, json);
  if (value) return add(*field, std::move(*value), place.text);
  const std::string raw = json.is_string() ? json.get<std::string>() : std::string();
  add_bad_value(*field, shown_json(json), raw, place.text);
}

void Layer::report_unknown(std::string_view name, const Place& place) {
  violations_.has_unknown_key = true;
  const std::string normal = normalized_name(name);
  if (const LaterSetting* later = find_later_option(normal)) {
    const std::string what = place.is_option ? cat("--", normal) : normal;
    return report(later_line(what, *later, place.text));
  }
  // A key=value word is its own place; an option too.
  const std::string shown = place.is_option
                                ? cat("unknown option ", quoted(cat("--", name)))
                                : cat("unknown key ", quoted(name), " (", place.text, ")");
  report(shown + spelling_hint(name, place.is_option));
}

void Layer::add_bad_value(const Field& field, const std::string& got, std::string_view raw,
                          const std::string& place) {
  violations_.broken_keys.insert(std::string(field.key));
  if (const LaterSetting* later = find_later_value(field.key, raw)) {
    return report(later_line(cat(field.key, " ", quoted(raw)), *later, place));
  }
  std::string hint;
  if (!field.choices.empty() && !raw.empty()) {
    const std::vector<std::string> choices(field.choices.begin(), field.choices.end());
    const std::optional<std::string> nearest = nearest_spelling(raw, choices);
    if (nearest) hint = cat("; did you mean ", quoted(*nearest), "?");
  }
  if (hint.empty()) hint = cat(". Fix: set it, e.g. ", example_usage(field));
  report(cat(field.key, " is ", got, ", must be ", expected_text(field), " (", place, ")", hint));
}

const Layer::Assignment* Layer::find(std::string_view key) const {
  for (const Assignment& assignment : assignments_) {
    if (assignment.field->key == key) return &assignment;
  }
  return nullptr;
}

void Layer::add(const Field& field, Value value, const std::string& place) {
  const Assignment* earlier = find(field.key);
  if (earlier == nullptr) {
    assignments_.push_back({&field, std::move(value), place});
    return;
  }
  if (earlier->value == value) return;
  violations_.broken_keys.insert(std::string(field.key));
  report(cat(field.key, " is given twice with different values: ", value_text(earlier->value), " (",
             earlier->place, ") and ", value_text(value), " (", place, "). Fix: keep one"));
}

void Layer::add_switch(const Switch& choice, bool is_on, const std::string& place) {
  if (!is_on) {
    offs_.push_back({&choice, place});
    return;
  }
  const Field& field = *find_field(choice.key);
  if (const LaterSetting* later = find_later_value(field.key, choice.value)) {
    report(later_line(choice.name, *later, place));
    violations_.broken_keys.insert(std::string(field.key));
  }
  // Added even if this release has no such value, so that two switches at once are noticed.
  add(field, std::string(choice.value), place);
}

void Layer::apply(RunConfig* config, std::set<std::string>* given) {
  for (const Assignment& assignment : assignments_) {
    assignment.field->set(*config, assignment.value);
    given->insert(std::string(assignment.field->key));
  }
  for (const Off& off : offs_) {
    const Field& field = *find_field(off.choice->key);
    const Value on = std::string(off.choice->value);
    if (field.get(*config) != on) continue;
    const Assignment* here = find(field.key);
    if (here != nullptr) {
      violations_.broken_keys.insert(std::string(field.key));
      report(cat(off.choice->name, " is given twice with different values: true (", here->place,
                 ") and false (", off.place, "). Fix: keep one"));
      continue;
    }
    field.set(*config, std::string(field.choices.front()));
    given->insert(std::string(field.key));
  }
}

}  // namespace assay::config
