#include "tests/architecture/source_tree.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "base/files.h"
#include "base/text.h"

namespace assay {
namespace {

// Everything that a checkout holds; what else lies there (builds, runs) is not ours to judge.
constexpr std::array<std::string_view, 11> kFolders = {"base",     "bench", "checkpoints", "cli",
                                                       "cmake",    "data",  "harness",     "models",
                                                       "platform", "tests", "trainer"};

void read_folder(const std::filesystem::path& root, const std::string& folder,
                 std::vector<SourceFile>& files) {
  const std::string top = join_path(root.string(), folder);
  if (!is_directory(top)) return;
  for (const std::string& name : list_directory(top)) {
    const std::string path = join_path(folder, name);
    const bool is_run_folder = folder == "checkpoints";  // its sources are flat
    if (is_directory(join_path(top, name))) {
      if (!name.starts_with('.') && !is_run_folder) read_folder(root, path, files);
      continue;
    }
    SourceFile file{path, {}};
    if (!file.is_code() && !file.is_build()) continue;
    file.lines = split(read_file(join_path(top, name)), '\n');
    if (file.lines.back().empty()) file.lines.pop_back();
    files.push_back(std::move(file));
  }
}

}  // namespace

std::vector<SourceFile> read_source_tree(const std::filesystem::path& root) {
  std::vector<SourceFile> files;
  for (const std::string_view folder : kFolders) read_folder(root, std::string(folder), files);
  SourceFile top{"CMakeLists.txt", {}};
  const std::string top_path = join_path(root.string(), top.path);
  if (path_exists(top_path)) {
    top.lines = split(read_file(top_path), '\n');
    files.push_back(std::move(top));
  }
  std::sort(files.begin(), files.end(),
            [](const SourceFile& a, const SourceFile& b) { return a.path < b.path; });
  return files;
}

}  // namespace assay
