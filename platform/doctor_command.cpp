#include "platform/doctor_command.h"

#include <array>
#include <cstdio>
#include <optional>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "platform/doctor_report.h"
#include "platform/programs.h"

namespace assay::platform {
namespace {

struct Option {
  std::string_view name;
  std::string_view value;  // name of its value in the help; empty: takes none
  std::string_view text;
};

// Both the parser and the help come from this table.
constexpr std::array<Option, 3> kOptions = {{
    {"--path", "DIR",
     "A folder whose disk is examined; may be given more than once. Default: \".\""},
    {"--json", "", "Print the record as JSON. Default: readable text"},
    {"--help", "", "Print this help and end"},
}};

struct DoctorOptions {
  std::vector<std::string> paths;
  bool is_json = false;
  bool is_help = false;
};

std::string help_text() {
  std::string out =
      "Usage: assay doctor [options]\n"
      "Records this machine (CPU, memory, disks, GPUs, driver, programs), says what looks wrong "
      "and "
      "how to fix it.\n"
      "Changes nothing. Exit code 0, or 6 if the GPU or the trainer cannot be used.\n\n"
      "Options:\n";
  for (const Option& option : kOptions) {
    std::string name = cat("  ", option.name, " ", option.value);
    name.resize(16, ' ');
    out += cat(name, option.text, "\n");
  }
  return out;
}

const Option& option_named(const std::string& name) {
  std::vector<std::string> names;
  for (const Option& option : kOptions) {
    if (name == option.name || (name == "-h" && option.name == "--help")) return option;
    names.emplace_back(option.name);
  }
  const std::optional<std::string> near = nearest_spelling(name, names);
  const std::string hint = near ? cat("; did you mean ", quoted(*near), "?")
                                : cat(", expected one of ", join(names, ", "));
  throw ConfigError(cat("assay doctor: unknown option ", quoted(name), hint));
}

DoctorOptions parse(std::span<const std::string> words) {
  DoctorOptions options;
  for (size_t i = 0; i < words.size(); ++i) {
    const size_t equals = words[i].find('=');
    const Option& option = option_named(words[i].substr(0, equals));
    if (option.value.empty()) {
      if (equals != std::string::npos) {
        throw ConfigError(cat("assay doctor: ", option.name, " takes no value, got ",
                              quoted(words[i]), ". Fix: leave out what follows ", option.name));
      }
      (option.name == "--json" ? options.is_json : options.is_help) = true;
      continue;
    }
    const bool is_joined = equals != std::string::npos;
    const std::string value =
        is_joined ? words[i].substr(equals + 1) : (i + 1 < words.size() ? words[++i] : "");
    if (value.empty()) {
      throw ConfigError(cat("assay doctor: ", option.name,
                            " has no value, expected a folder. Fix: ", option.name, " /data"));
    }
    options.paths.push_back(value);
  }
  if (options.paths.empty()) options.paths.emplace_back(".");
  return options;
}

void print(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); }

}  // namespace

int run_doctor_command(std::span<const std::string> words) {
  const DoctorOptions options = parse(words);
  if (options.is_help) {
    print(help_text());
    return static_cast<int>(ExitCode::kOk);
  }
  const DoctorRecord record =
      make_doctor_record(record_environment(options.paths), check_trainer(find_trainer()));
  print(options.is_json ? doctor_json(record) + "\n" : doctor_text(record));
  return static_cast<int>(has_fatal_problem(record) ? ExitCode::kCheckFailed : ExitCode::kOk);
}

}  // namespace assay::platform
