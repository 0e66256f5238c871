#include "tests/architecture/rules.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "base/text.h"

namespace assay {
namespace {

using Components = std::set<std::string, std::less<>>;

// Which components a component may include, itself aside. base <- the torch-free ones <- the ones
// with torch; the harness and the command line see torch-free ones only.
const std::map<std::string, Components, std::less<>>& allowed_edges() {
  static const std::map<std::string, Components, std::less<>> edges = {
      {"base", {}},
      {"platform", {"base"}},
      {"checkpoints", {"base"}},
      {"trainer/config", {"base"}},
      {"trainer/metrics", {"base"}},
      {"trainer/launch", {"base", "platform"}},
      {"data", {"base"}},
      {"trainer/run",
       {"base", "platform", "checkpoints", "trainer/config", "trainer/metrics", "data"}},
      {"harness", {"base", "platform", "checkpoints", "trainer/config", "trainer/metrics", "data"}},
      {"cli",
       {"base", "platform", "checkpoints", "trainer/config", "trainer/metrics", "trainer/launch",
        "trainer/run", "data", "harness"}},
      {"models", {"base", "trainer/config"}},
      {"trainer/distributed", {"base", "trainer/config", "trainer/launch", "trainer/metrics"}},
      {"trainer/step",
       {"base", "platform", "checkpoints", "trainer/config", "trainer/metrics", "data", "models",
        "trainer/launch", "trainer/distributed"}},
      {"trainer/estimate",
       {"base", "platform", "trainer/config", "trainer/metrics", "trainer/step", "data", "models"}},
      {"trainer",
       {"base", "platform", "checkpoints", "trainer/config", "trainer/metrics", "trainer/launch",
        "trainer/run", "trainer/distributed", "trainer/step", "trainer/estimate", "data",
        "models"}},
  };
  return edges;
}

std::string at(const SourceFile& file, size_t line_index) {
  return cat(file.path, ":", line_index + 1, ": ");
}

// The longest component that is a folder above the path; "" for the rest (tests, bench, cmake).
std::string component_of(std::string_view path) {
  std::string best;
  for (const auto& [name, unused] : allowed_edges()) {
    if (name.size() > best.size() && path.starts_with(name + "/")) best = name;
  }
  return best;
}

struct Include {
  std::string target;
  bool is_own = false;  // written with quotes
};

std::optional<Include> include_of(const std::string& line) {
  const std::string bare = trimmed(line);
  if (!bare.starts_with('#')) return std::nullopt;
  const std::string directive = trimmed(bare.substr(1));
  if (!directive.starts_with("include")) return std::nullopt;
  const std::string rest = trimmed(directive.substr(std::string_view("include").size()));
  if (rest.empty() || (rest[0] != '"' && rest[0] != '<')) return std::nullopt;
  const size_t end = rest.find(rest[0] == '"' ? '"' : '>', 1);
  if (end == std::string::npos) return std::nullopt;
  return Include{rest.substr(1, end - 1), rest[0] == '"'};
}

// Calls `judge(file, line index, include)` for every include of code; what it returns is kept.
template <class Judge>
Violations judge_includes(const std::vector<SourceFile>& files, const Judge& judge) {
  Violations found;
  for (const SourceFile& file : files) {
    if (!file.is_code()) continue;
    for (size_t i = 0; i < file.lines.size(); ++i) {
      const std::optional<Include> include = include_of(file.lines[i]);
      if (!include) continue;
      const std::string problem = judge(file, *include);
      if (!problem.empty()) found.push_back(at(file, i) + problem);
    }
  }
  return found;
}

bool is_torch(std::string_view header) {
  constexpr auto kRoots = std::to_array<std::string_view>({"torch/", "ATen/", "c10/"});
  return std::any_of(kRoots.begin(), kRoots.end(),
                     [&](std::string_view root) { return header.starts_with(root); });
}

bool may_see_torch(const SourceFile& file) {
  constexpr auto kComponents =
      std::to_array<std::string_view>(
          {"models", "trainer", "trainer/distributed", "trainer/estimate", "trainer/step"});
  // A component's tests lie at the same path below tests/; the build's own tests see everything.
  const bool is_test = file.path.starts_with("tests/");
  const std::string_view path = is_test ? std::string_view(file.path).substr(6) : file.path;
  if (path.starts_with("bench/")) return true;
  if (is_test && (path.starts_with("build/") || path.starts_with("support/"))) return true;
  return std::find(kComponents.begin(), kComponents.end(), component_of(path)) != kComponents.end();
}

bool is_product(const SourceFile& file) { return !component_of(file.path).empty(); }

std::set<std::string> code_paths(const std::vector<SourceFile>& files) {
  std::set<std::string> paths;
  for (const SourceFile& file : files) {
    if (file.is_code()) paths.insert(file.path);
  }
  return paths;
}

// True if the word stands in the line and is not the tail of a longer name.
bool names_file(std::string_view line, std::string_view name) {
  for (size_t found = line.find(name); found != std::string_view::npos;
       found = line.find(name, found + 1)) {
    const char before = found == 0 ? ' ' : line[found - 1];
    if (std::string_view(" \t/\"(;").find(before) != std::string_view::npos) return true;
  }
  return false;
}

// The literal names that a line gives to fault_point(...) and is_fault_due(...).
std::vector<std::string> fault_names_in(std::string_view line) {
  std::vector<std::string> names;
  for (const std::string_view call : {"fault_point(\"", "is_fault_due(\""}) {
    const size_t found = line.find(call);
    if (found == std::string_view::npos) continue;
    const std::string_view rest = line.substr(found + call.size());
    names.emplace_back(rest.substr(0, rest.find('"')));
  }
  return names;
}

bool is_always_literal(std::string_view point) {
  return point.starts_with("train.") || point.starts_with("data.") || point.starts_with("defect.");
}

}  // namespace

Violations forbidden_include_edges(const std::vector<SourceFile>& files) {
  const std::set<std::string> paths = code_paths(files);
  return judge_includes(files, [&](const SourceFile& file, const Include& include) -> std::string {
    if (!include.is_own) return "";
    if (!paths.contains(include.target)) {
      return cat(quoted(include.target), " is no file of this project; expected the full path ",
                 "from its root, or <...> for others' headers");
    }
    const std::string from = component_of(file.path);
    const std::string to = component_of(include.target);
    if (from.empty() || from == to) return "";
    const Components& allowed = allowed_edges().find(from)->second;
    if (allowed.contains(to)) return "";
    const std::vector<std::string> names(allowed.begin(), allowed.end());
    return cat(from, " must not include ", include.target,
               "; it may see: ", names.empty() ? "nothing but itself" : join(names, ", "));
  });
}

Violations torch_outside_its_folders(const std::vector<SourceFile>& files) {
  return judge_includes(files, [](const SourceFile& file, const Include& include) -> std::string {
    if (!is_torch(include.target) || may_see_torch(file)) return "";
    return cat("LibTorch's ", include.target, " in a torch-free folder");
  });
}

Violations heavy_headers_in_headers(const std::vector<SourceFile>& files) {
  return judge_includes(files, [](const SourceFile& file, const Include& include) -> std::string {
    if (!file.is_header() || !is_product(file)) return "";
    if (include.target.starts_with("torch/")) {
      return cat(include.target, " in a header; expected ATen/core/Tensor.h or a declaration");
    }
    if (include.target == "nlohmann/json.hpp") {
      return "nlohmann/json.hpp in a header; expected nlohmann/json_fwd.hpp";
    }
    return "";
  });
}

Violations standard_output_in_libraries(const std::vector<SourceFile>& files) {
  Violations found;
  const std::string word = "std::cout";
  for (const SourceFile& file : files) {
    const bool may_print = file.path.starts_with("cli/") || file.path.ends_with("_command.cpp") ||
                           file.path.ends_with("_main.cpp");
    if (!is_product(file) || !file.is_code() || may_print) continue;
    for (size_t i = 0; i < file.lines.size(); ++i) {
      if (file.lines[i].find(word) == std::string::npos) continue;
      found.push_back(cat(at(file, i), word, " in a library; only cli/, *_command.cpp and ",
                          "*_main.cpp speak to the user"));
    }
  }
  return found;
}

Violations long_files(const std::vector<SourceFile>& files) {
  constexpr size_t kMaxLines = 400;  // the house style's bound
  Violations found;
  for (const SourceFile& file : files) {
    if (!file.is_code() || file.lines.size() <= kMaxLines) continue;
    found.push_back(cat(at(file, kMaxLines), file.lines.size(), " lines, expected at most ",
                        kMaxLines, "; split it by noun"));
  }
  return found;
}

Violations tests_outside_the_build(const std::vector<SourceFile>& files) {
  Violations found;
  for (const SourceFile& test : files) {
    if (!test.path.starts_with("tests/") || !test.path.ends_with("_test.cpp")) continue;
    const std::string name = test.path.substr(test.path.rfind('/') + 1);
    const bool is_listed = std::any_of(files.begin(), files.end(), [&](const SourceFile& file) {
      return file.is_build() &&
             std::any_of(file.lines.begin(), file.lines.end(),
                         [&](const std::string& line) { return names_file(line, name); });
    });
    if (!is_listed) found.push_back(at(test, 0) + "this test is named in no CMakeLists.txt");
  }
  return found;
}

Violations forbidden_words(const std::vector<SourceFile>& files) {
  // Put together here, so that this file does not hold them.
  const std::array<std::string, 4> words = {cat("TO", "DO"), cat("FIX", "ME"), cat("DISABLED", "_"),
                                            cat("using ", "namespace ")};
  Violations found;
  for (const SourceFile& file : files) {
    if (!file.is_code()) continue;
    for (size_t i = 0; i < file.lines.size(); ++i) {
      for (const std::string& word : words) {
        if (file.lines[i].find(word) == std::string::npos) continue;
        found.push_back(cat(at(file, i), trimmed(word), " is not allowed in the tree"));
      }
    }
  }
  return found;
}

Violations characters_beyond_ascii(const std::vector<SourceFile>& files) {
  Violations found;
  for (const SourceFile& file : files) {
    for (size_t i = 0; i < file.lines.size(); ++i) {
      const std::string& line = file.lines[i];
      const auto bad = std::find_if(line.begin(), line.end(), [](char letter) {
        return static_cast<unsigned char>(letter) >= 0x7F || (letter < ' ' && letter != '\t');
      });
      if (bad == line.end()) continue;
      const auto byte = static_cast<unsigned char>(*bad);
      found.push_back(cat(at(file, i), "byte 0x", hex_encode({&byte, 1}), " in column ",
                          bad - line.begin() + 1, ", expected printable ASCII"));
    }
  }
  return found;
}

Violations fault_points_off_the_table(const std::vector<SourceFile>& files,
                                      std::span<const std::string_view> known) {
  Violations found;
  Components asked;
  for (const SourceFile& file : files) {
    if (!is_product(file) || !file.is_code()) continue;
    for (size_t i = 0; i < file.lines.size(); ++i) {
      for (const std::string& name : fault_names_in(file.lines[i])) {
        asked.insert(name);
        if (std::find(known.begin(), known.end(), name) != known.end()) continue;
        found.push_back(cat(at(file, i), "fault point ", quoted(name), " is not in the table of ",
                            "base/fault_points.cpp"));
      }
    }
  }
  for (const std::string_view point : known) {
    if (!is_always_literal(point) || asked.contains(point)) continue;
    found.push_back(cat("base/fault_points.cpp:1: ", quoted(point),
                        " is in the table, but no code ",
                        "reaches it, so that a test that arms it cannot fail"));
  }
  return found;
}

Violations headers_without_guard(const std::vector<SourceFile>& files) {
  Violations found;
  for (const SourceFile& file : files) {
    if (!file.is_header()) continue;
    const bool is_guarded = std::any_of(file.lines.begin(), file.lines.end(), [](const auto& line) {
      return trimmed(line) == "#pragma once";
    });
    if (!is_guarded) found.push_back(at(file, 0) + "#pragma once is missing");
  }
  return found;
}

}  // namespace assay
