// Holds the whole source tree to the rules, and each rule to a tree that breaks it.
#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/fault_points.h"
#include "base/text.h"
#include "tests/architecture/rules.h"
#include "tests/architecture/source_tree.h"

namespace assay {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::vector<SourceFile>& project() {
  static const std::vector<SourceFile> files = read_source_tree(ASSAY_SOURCE_DIR);
  return files;
}

void expect_none(const Violations& found) {
  EXPECT_TRUE(found.empty()) << found.size() << " violations:\n" << join(found, "\n");
}

SourceFile with_line(const std::string& path, const std::string& line) { return {path, {line}}; }

// A tree with one file that includes another.
std::vector<SourceFile> edge(const std::string& from, const std::string& to) {
  return {with_line(from, cat("#include \"", to, "\"")), with_line(to, "#pragma once")};
}

TEST(SourceTree, IsReadWhole) {
  const auto has = [](const std::string& path) {
    return std::any_of(project().begin(), project().end(),
                       [&](const SourceFile& file) { return file.path == path; });
  };
  EXPECT_TRUE(has("base/text.h"));
  EXPECT_TRUE(has("tests/architecture/architecture_test.cpp"));
  EXPECT_TRUE(has("CMakeLists.txt"));
  EXPECT_FALSE(has("third_party/xxhash/xxhash.h"));
}

TEST(SourceTree, HasOnlyTheAllowedIncludes) { expect_none(forbidden_include_edges(project())); }
TEST(SourceTree, KeepsTorchInItsFolders) { expect_none(torch_outside_its_folders(project())); }
TEST(SourceTree, KeepsItsHeadersLight) { expect_none(heavy_headers_in_headers(project())); }
TEST(SourceTree, PrintsFromCommandsOnly) { expect_none(standard_output_in_libraries(project())); }
TEST(SourceTree, HasNoLongFiles) { expect_none(long_files(project())); }
TEST(SourceTree, BuildsEveryTest) { expect_none(tests_outside_the_build(project())); }
TEST(SourceTree, HasNoForbiddenWords) { expect_none(forbidden_words(project())); }
TEST(SourceTree, IsPlainAscii) { expect_none(characters_beyond_ascii(project())); }
TEST(SourceTree, AgreesWithTheTableOfFaultPoints) {
  expect_none(fault_points_off_the_table(project(), known_fault_points()));
}
TEST(SourceTree, GuardsItsHeaders) { expect_none(headers_without_guard(project())); }

TEST(IncludeEdges, AreRefusedAgainstTheDirection) {
  EXPECT_THAT(forbidden_include_edges(edge("base/text.cpp", "platform/cpu.h")),
              ElementsAre(HasSubstr("base/text.cpp:1: base must not include platform/cpu.h")));
  for (const char* target : {"models/model.h", "trainer/step/train_step.h", "trainer/loop.h",
                             "trainer/launch/store.h", "cli/command_line.h"}) {
    EXPECT_THAT(forbidden_include_edges(edge("harness/scenarios/smoke.cpp", target)),
                ElementsAre(HasSubstr("harness must not include")))
        << target;
  }
  EXPECT_EQ(forbidden_include_edges(edge("cli/assay_main.cpp", "models/model.h")).size(), 1U);
  EXPECT_EQ(forbidden_include_edges(edge("models/vgg.cpp", "data/dataset.h")).size(), 1U);
  EXPECT_EQ(forbidden_include_edges(edge("trainer/config/io.cpp", "trainer/loop.h")).size(), 1U);
}

TEST(IncludeEdges, AreAllowedAlongTheDirection) {
  expect_none(forbidden_include_edges(edge("trainer/training_loop.cpp", "models/model.h")));
  expect_none(forbidden_include_edges(edge("harness/report/html.cpp", "harness/check.h")));
  expect_none(forbidden_include_edges(edge("tests/harness/check_test.cpp", "harness/check.h")));
}

TEST(IncludeEdges, WantTheFullPath) {
  EXPECT_THAT(forbidden_include_edges({with_line("base/text.cpp", "#include \"text.h\"")}),
              ElementsAre(HasSubstr("\"text.h\" is no file of this project")));
}

TEST(TorchIncludes, AreRefusedInTorchFreeFolders) {
  for (const char* line : {"#include <torch/torch.h>", "#include <ATen/core/Tensor.h>",
                           "  #  include \"c10/util/Exception.h\""}) {
    for (const char* path : {"harness/check.h", "data/loader.cpp", "trainer/config/io.cpp",
                             "cli/assay_main.cpp", "tests/data/loader_test.cpp"}) {
      EXPECT_EQ(torch_outside_its_folders({with_line(path, line)}).size(), 1U) << path << line;
    }
    for (const char* path : {"models/vgg.cpp", "trainer/step/amp.cpp", "trainer/train_main.cpp",
                             "trainer/distributed/world.cpp", "tests/models/vgg_test.cpp"}) {
      expect_none(torch_outside_its_folders({with_line(path, line)}));
    }
  }
}

TEST(HeavyHeaders, AreRefusedInHeadersOnly) {
  EXPECT_EQ(heavy_headers_in_headers({with_line("models/a.h", "#include <torch/nn.h>")}).size(),
            1U);
  EXPECT_EQ(
      heavy_headers_in_headers({with_line("base/a.h", "#include <nlohmann/json.hpp>")}).size(), 1U);
  expect_none(heavy_headers_in_headers({with_line("models/a.cpp", "#include <torch/nn.h>"),
                                        with_line("base/a.h", "#include <nlohmann/json_fwd.hpp>"),
                                        with_line("models/b.h", "#include <ATen/core/Tensor.h>")}));
}

TEST(StandardOutput, IsRefusedInLibraries) {
  const std::string line = "  std::cout << 1;";
  EXPECT_EQ(standard_output_in_libraries({with_line("data/loader.cpp", line)}).size(), 1U);
  expect_none(standard_output_in_libraries({with_line("data/data_command.cpp", line),
                                            with_line("trainer/train_main.cpp", line),
                                            with_line("cli/help.cpp", line)}));
}

TEST(FileLength, IsBounded) {
  const SourceFile longest{"base/a.cpp", std::vector<std::string>(400)};
  const SourceFile too_long{"base/b.cpp", std::vector<std::string>(401)};
  EXPECT_THAT(long_files({longest, too_long}), ElementsAre(HasSubstr("base/b.cpp:401: 401 lines")));
}

TEST(TestSources, MustBeNamedInTheBuild) {
  const SourceFile test = with_line("tests/data/a_test.cpp", "");
  EXPECT_EQ(tests_outside_the_build({test}).size(), 1U);
  EXPECT_EQ(tests_outside_the_build({test, with_line("data/CMakeLists.txt", "  ${t}/aa_test.cpp")})
                .size(),
            1U);
  expect_none(
      tests_outside_the_build({test, with_line("data/CMakeLists.txt", "  ${t}/a_test.cpp")}));
}

TEST(ForbiddenWords, AreFound) {
  EXPECT_THAT(forbidden_words({with_line("base/a.cpp", cat("// TO", "DO: later"))}),
              ElementsAre(HasSubstr("base/a.cpp:1: ")));
  EXPECT_EQ(forbidden_words({with_line("base/a.cpp", cat("TEST(A, DISABLED", "_B)"))}).size(), 1U);
  EXPECT_EQ(forbidden_words({with_line("base/a.cpp", cat("using ", "namespace std;"))}).size(), 1U);
}

TEST(Characters, MustBeAscii) {
  EXPECT_THAT(characters_beyond_ascii({with_line("base/a.cpp", "// na\xc3\xafve")}),
              ElementsAre(HasSubstr("base/a.cpp:1: byte 0xc3 in column 6")));
  EXPECT_EQ(characters_beyond_ascii({with_line("base/a.cpp", "int a;\r")}).size(), 1U);
}

TEST(FaultPointTable, MustHoldEveryNameInCode) {
  const std::vector<std::string_view> known = {"config.open", "train.start"};
  EXPECT_THAT(fault_points_off_the_table(
                  {with_line("trainer/a.cpp", "fault_point(\"train.start\");"),
                   with_line("trainer/b.cpp", "if (is_fault_due(\"defect.new\")) x();")},
                  known),
              ElementsAre(HasSubstr("trainer/b.cpp:1: fault point \"defect.new\"")));
}

TEST(FaultPointTable, MustNotHoldNamesThatNoCodeReaches) {
  const std::vector<std::string_view> known = {"config.open", "train.start"};
  EXPECT_THAT(fault_points_off_the_table({}, known), ElementsAre(HasSubstr("\"train.start\"")));
}

TEST(Headers, MustBeGuarded) {
  EXPECT_EQ(headers_without_guard({with_line("base/a.h", "int a();")}).size(), 1U);
}

}  // namespace
}  // namespace assay
