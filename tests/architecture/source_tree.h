// The project's own source files as text, for the rules that no compiler checks.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace assay {

struct SourceFile {
  std::string path;  // from the root of the project, with slashes
  std::vector<std::string> lines;

  bool is_header() const { return path.ends_with(".h"); }
  bool is_code() const { return is_header() || path.ends_with(".cpp") || path.ends_with(".cu"); }
  bool is_build() const { return path.ends_with("CMakeLists.txt") || path.ends_with(".cmake"); }
};

// C++ and CMake files below the root, sorted by path; without third_party, hidden folders, build
// and run folders.
std::vector<SourceFile> read_source_tree(const std::filesystem::path& root);

}  // namespace assay
