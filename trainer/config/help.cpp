// The text of assay train --help, made from the table of settings.
#include <map>

#include "base/text.h"
#include "trainer/config/config_io.h"
#include "trainer/config/fields.h"
#include "trainer/config/later_release.h"
#include "trainer/config/values.h"

namespace assay::config {
namespace {

constexpr size_t kWidth = 100;
constexpr std::string_view kIndent = "      ";

constexpr std::string_view kIntroduction =
    "Usage: assay train [CONFIG.json] [options] [key=value ...]\n"
    "\n"
    "One rank of a training run; alone it is a whole single-process run. CONFIG.json (comments\n"
    "allowed) takes the same names as the options, or sections: {\"model\": {\"n_layer\": 2}}.\n"
    "Options and key=value words win over CONFIG.json, which wins over the defaults. In names - "
    "and _\n"
    "are the same; a value follows after = or a space; yes-or-no options work as --bf16,\n"
    "--bf16=false, --no-bf16. On a resume all that is not given comes from the run's own\n"
    "configuration.\n";

// Wraps between words; a range such as "1 .. 5" stays on one line.
void append_wrapped(std::string& out, std::string_view text) {
  const std::vector<std::string> words = split(text, ' ');
  std::string line(kIndent);
  for (size_t i = 0; i < words.size(); ++i) {
    std::string word = words[i];
    while (i + 2 < words.size() && words[i + 1] == "..") {
      word += cat(" .. ", words[i + 2]);
      i += 2;
    }
    const bool is_first = line.size() == kIndent.size();
    if (!is_first && line.size() + 1 + word.size() > kWidth) {
      out += line + "\n";
      line = kIndent;
    } else if (!is_first) {
      line += ' ';
    }
    line += word;
  }
  out += line + "\n";
}

std::string_view placeholder(const Field& field) {
  switch (field.type) {
    case FieldType::kBool:
      return "";
    case FieldType::kInteger:
    case FieldType::kUnsigned:
      return "N";
    case FieldType::kNumber:
      return "X";
    case FieldType::kText:
      return field.choices.empty() ? "TEXT" : "NAME";
  }
  return "";
}

std::string usage_line(const Field& field) {
  const std::string_view value = placeholder(field);
  if (field.names.empty()) return cat("  ", field.key, "=", value.empty() ? "true|false" : value);
  std::string line = cat("  --", field.names.front(), value.empty() ? "" : " ", value);
  for (size_t i = 1; i < field.names.size(); ++i) line += cat(", --", field.names[i]);
  if (field.key != field.names.front()) line += cat("  (", field.key, ")");
  return line;
}

std::string default_text(const Field& field) {
  const Value value = field.get(RunConfig{});
  if (std::holds_alternative<Unset>(value)) return "none";
  const auto* text = std::get_if<std::string>(&value);
  return text != nullptr ? *text : value_text(value);
}

void append_field(std::string& out, const Field& field) {
  out += usage_line(field) + "\n";
  std::string text = cat(field.help, ".");
  const bool is_plain =
      field.type == FieldType::kBool || (field.type == FieldType::kText && field.choices.empty());
  if (!is_plain) text += cat(" Must be ", expected_text(field), ".");
  for (const Spelling& spelling : field.spellings) {
    text += cat(" ", spelling.alias, " is ", spelling.choice, ".");
  }
  append_wrapped(out, cat(text, " Default: ", default_text(field), "."));
}

void append_switches(std::string& out, std::string_view key) {
  for (const Switch& choice : switches()) {
    if (choice.key != key || find_later_value(key, choice.value) != nullptr) continue;
    out += cat("  --", choice.name, "\n");
    append_wrapped(out, cat(choice.help, ". Default: false."));
  }
}

std::string later_text() {
  std::string text;
  std::map<std::string, std::string> values;
  for (const LaterSetting& later : later_settings()) {
    if (later.value.empty()) {
      text += cat(text.empty() ? "" : ", ", "--", later.key);
    } else {
      std::string& list = values[std::string(later.key)];
      list += cat(list.empty() ? "" : ", ", later.value);
    }
  }
  for (const auto& [key, list] : values) text += cat("; ", key, " ", list);
  return text + ".";
}

}  // namespace

std::string train_help() {
  std::string out(kIntroduction);
  for (int group = 0; group <= static_cast<int>(FieldGroup::kLogging); ++group) {
    out += cat("\n", group_title(static_cast<FieldGroup>(group)), "\n");
    for (const Field& field : fields()) {
      if (field.group != static_cast<FieldGroup>(group)) continue;
      append_field(out, field);
      append_switches(out, field.key);
    }
  }
  out += "\nThis program\n  --print-config\n";
  append_wrapped(out, "Print the resolved configuration as JSON and end. Default: false.");
  out += "  --help, -h\n";
  append_wrapped(out, "Print this text and end. Default: false.");
  out += cat("\nNot in this release (", kRelease, ")\n");
  append_wrapped(out, later_text());
  return out;
}

}  // namespace assay::config
