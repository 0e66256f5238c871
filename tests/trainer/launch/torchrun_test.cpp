// The same worker under this launcher and under torchrun itself: what it is told and what is left
// on the disk must agree. Skipped where torchrun is not installed.
#include <filesystem>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.h"
#include "base/text.h"
#include "tests/support/ranks.h"
#include "tests/trainer/launch/launcher.h"

namespace assay::launch {
namespace {

std::string find_torchrun() {
  if (const char* named = std::getenv("ASSAY_TORCHRUN"); named != nullptr && *named != '\0') {
    return named;
  }
  const char* path = std::getenv("PATH");
  for (const std::string& folder : split(path == nullptr ? "" : path, ':')) {
    if (path_exists(join_path(folder, "torchrun"))) return join_path(folder, "torchrun");
  }
  return "";
}

using Variables = std::map<std::string, std::string>;

Variables variables_in(const std::string& file) {
  Variables variables;
  for (const std::string& line : split(read_file(file), '\n')) {
    const size_t equals = line.find('=');
    if (equals != std::string::npos) variables[line.substr(0, equals)] = line.substr(equals + 1);
  }
  return variables;
}

// Paths below a folder, with the random part of the run's folder replaced.
std::set<std::string> tree_of(const std::string& folder) {
  std::set<std::string> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    std::string path = entry.path().string().substr(folder.size() + 1);
    const size_t random = path.find("none_");
    if (random == 0) path.replace(0, 13, "none_RANDOM");  // "none_" and eight letters
    paths.insert(path);
  }
  return paths;
}

class Torchrun : public ::testing::Test {
 protected:
  void SetUp() override {
    torchrun_ = find_torchrun();
    if (torchrun_.empty()) GTEST_SKIP() << "no torchrun on PATH, and ASSAY_TORCHRUN is not set";
  }
  std::string file(const std::string& name) const { return join_path(folder_.path(), name); }

  support::ProgramEnd run_torchrun(const std::vector<std::string>& options,
                                   const std::vector<std::string>& actions) const {
    support::ProgramRequest request;
    // Its default port may be taken by another one on this machine.
    request.command = {torchrun_, "--no-python", "--master-port", cat(support::free_port())};
    request.command.insert(request.command.end(), options.begin(), options.end());
    request.command.insert(request.command.end(), {LAUNCH_PROBE, "train"});
    request.command.insert(request.command.end(), actions.begin(), actions.end());
    return support::run_program(request);
  }

  std::string torchrun_;
  TemporaryFolder folder_{"assay-torchrun"};
};

TEST_F(Torchrun, TellsItsWorkersTheSame) {
  const std::vector<std::string> options = {"--nproc-per-node", "2", "--max-restarts", "1"};
  const auto theirs_end = run_torchrun(options, {cat("env=", file("theirs"))});
  ASSERT_EQ(theirs_end.code, 0) << theirs_end.output;
  ASSERT_EQ(run_launcher({.options = options, .actions = {cat("env=", file("ours"))}}).code, 0);
  // Where the two must differ: the port is a free one here and the given one there, the store
  // belongs to rank 0 here and to the agent there, more signals are passed on, and the error file
  // of a run without a log folder is one in memory.
  const std::set<std::string> differing = {"MASTER_PORT", "TORCHELASTIC_USE_AGENT_STORE",
                                           "TORCHELASTIC_SIGNALS_TO_HANDLE",
                                           "TORCHELASTIC_ERROR_FILE"};
  for (const char* rank : {"0", "1"}) {
    Variables theirs = variables_in(cat(file("theirs"), ".", rank));
    Variables ours = variables_in(cat(file("ours"), ".", rank));
    for (const auto& [name, value] : theirs) {
      ASSERT_TRUE(ours.contains(name)) << name << " is missing";
      if (differing.contains(name)) continue;
      EXPECT_EQ(ours[name], value) << name;
    }
    for (const auto& [name, value] : ours) {
      EXPECT_TRUE(theirs.contains(name) || name.starts_with("ASSAY_")) << name << " is new";
    }
  }
}

TEST_F(Torchrun, LeavesTheSameFiles) {
  const std::vector<std::vector<std::string>> cases = {
      {}, {"--tee", "3"}, {"--redirects", "0:1,1:3"}, {"--tee", "1", "--redirects", "2"}};
  for (size_t i = 0; i < cases.size(); ++i) {
    const std::string theirs = file(cat("theirs", i));
    const std::string ours = file(cat("ours", i));
    std::vector<std::string> options = {"--nproc-per-node", "2", "--log-dir", theirs};
    options.insert(options.end(), cases[i].begin(), cases[i].end());
    const std::vector<std::string> actions = {"say=out", "err=error", "r1:fail=oh"};
    const auto end = run_torchrun(options, actions);
    ASSERT_EQ(end.code, 0) << end.output;
    options[3] = ours;
    ASSERT_EQ(run_launcher({.options = options, .actions = actions}).code, 0);
    EXPECT_EQ(tree_of(ours), tree_of(theirs)) << "case " << i;
  }
}

TEST_F(Torchrun, ShowsWhatOurRanksWriteAboutTheirFailure) {
  const auto end =
      run_torchrun({"--nproc-per-node", "2"}, {"r1:fail=the disk is full", "r1:exit=4", "hang"});
  EXPECT_NE(end.code, 0);
  EXPECT_THAT(end.output, ::testing::HasSubstr("the disk is full"));
}

}  // namespace
}  // namespace assay::launch
