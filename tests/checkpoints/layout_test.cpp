#include "checkpoints/layout.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/checkpoints/sample_state.h"

namespace assay::checkpoints {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<int64_t> steps_of(const std::vector<CheckpointEntry>& entries) {
  std::vector<int64_t> steps;
  for (const CheckpointEntry& entry : entries) steps.push_back(entry.step);
  return steps;
}

TEST(Layout, StepsComeOutOfNamesOfOneFormOnly) {
  EXPECT_EQ(step_of_name(checkpoint_name(15)), 15);
  EXPECT_EQ(step_of_name("checkpoint-0"), 0);
  EXPECT_EQ(step_of_name(checkpoint_name(INT64_MAX)), INT64_MAX);
  for (const std::string_view bad :
       {"checkpoint-", "checkpoint-015", "checkpoint--1", "checkpoint-1a", "checkpoint-1 ",
        "Checkpoint-1", "checkpoint-9223372036854775808", "checkpoint-+1", "xcheckpoint-1", ""}) {
    EXPECT_FALSE(step_of_name(bad)) << bad;
  }
}

TEST(Layout, TemporaryNamesAreRecognisedAndDiffer) {
  EXPECT_TRUE(is_temporary_name(temporary_name(15)));
  EXPECT_NE(temporary_name(15), temporary_name(15));
  for (const std::string_view bad :
       {"checkpoint-15", ".checkpoint-15", ".checkpoint-15.tmp-", ".checkpoint-15.tmp-xyz",
        ".checkpoint-x.tmp-0123456789abcdef", ".checkpoint-15.tmp-0123456789ABCDEF",
        ".tmp-0123456789abcdef", ".checkpoint-15.tmp-0123456789abcdef0"}) {
    EXPECT_FALSE(is_temporary_name(bad)) << bad;
  }
}

TEST(Layout, RankFilesHaveFiveDigitsOrMore) {
  EXPECT_EQ(rank_file_name(0), "rank_00000.json");
  EXPECT_EQ(rank_file_name(123456), "rank_123456.json");
  EXPECT_TRUE(is_checkpoint_file_name("rank_00007.json"));
  EXPECT_FALSE(is_checkpoint_file_name("rank_7.json"));
  EXPECT_FALSE(is_checkpoint_file_name("rank_.json"));
  EXPECT_FALSE(is_checkpoint_file_name("notes.txt"));
}

TEST(Layout, CheckpointsAreSortedByNumberAndFoundUnderAnyName) {
  const TemporaryFolder run;
  for (const int64_t step : {900, 10000, 9900, 1000}) commit_sample(run.path(), step);
  std::filesystem::rename(join_path(run.path(), "checkpoint-9900"),
                          join_path(run.path(), "the good one"));
  const std::vector<CheckpointEntry> entries = list_checkpoints(run.path());
  EXPECT_THAT(steps_of(entries), ElementsAre(900, 1000, 9900, 10000));
  EXPECT_EQ(file_name(entries[2].path), "the good one");
}

TEST(Layout, DamagedManifestsAndForeignFoldersAreCandidatesWithAProblem) {
  const TemporaryFolder run;
  const std::string damaged = commit_sample(run.path(), 10);
  flip_byte(join_path(damaged, kManifestFile), 5);
  create_directories(join_path(run.path(), "checkpoint-1000"));
  create_directories(join_path(run.path(), "logs"));
  const std::vector<CheckpointCandidate> candidates = list_candidates(run.path());
  ASSERT_EQ(candidates.size(), 2U);
  EXPECT_EQ(candidates[0].step, 10);
  EXPECT_THAT(candidates[0].problem, HasSubstr("manifest.json"));
  EXPECT_THAT(candidates[1].problem, HasSubstr("no manifest.json"));
  EXPECT_THAT(list_checkpoints(run.path()), IsEmpty());
}

TEST(Layout, LinksInARunFolderAreNotFollowed) {
  const TemporaryFolder outside;
  const TemporaryFolder run;
  commit_sample(outside.path(), 10);
  std::filesystem::create_directory_symlink(join_path(outside.path(), "checkpoint-10"),
                                            join_path(run.path(), "checkpoint-10"));
  EXPECT_THAT(list_candidates(run.path()), IsEmpty());
  write_plain(join_path(run.path(), kLatestFile), "checkpoint-10\n");
  EXPECT_THAT(thrown_message<CheckpointError>([&] { read_latest(run.path()); }),
              HasSubstr("a link"));
}

TEST(Layout, LatestNamesAFolderBesideIt) {
  const TemporaryFolder run;
  EXPECT_FALSE(read_latest(run.path()));
  commit_sample(run.path(), 10);
  EXPECT_EQ(read_file(join_path(run.path(), kLatestFile)), "checkpoint-10\n");
  EXPECT_EQ(read_latest(run.path()), join_path(run.path(), "checkpoint-10"));
}

TEST(Layout, LatestThatLeadsElsewhereIsRefusedWithItsText) {
  const TemporaryFolder run;
  commit_sample(run.path(), 10);
  const std::string path = join_path(run.path(), kLatestFile);
  for (const std::string& text :
       {std::string("../x"), std::string("/etc"), std::string(".."), std::string(""),
        std::string("."), std::string("checkpoint-99\n"), std::string("checkpoint-10\n\n"),
        std::string("a\0b", 3), std::string(5000, 'x'), cat(run.path(), "/checkpoint-10")}) {
    write_plain(path, text);
    EXPECT_THAT(thrown_message<CheckpointError>([&] { read_latest(run.path()); }),
                AllOf(HasSubstr(path), HasSubstr("Fix: ")))
        << text.substr(0, 40);
  }
  std::filesystem::remove(path);
  std::filesystem::create_symlink("checkpoint-10", path);
  EXPECT_THAT(thrown_message<CheckpointError>([&] { read_latest(run.path()); }),
              HasSubstr("a link"));
}

TEST(Layout, StaleTemporariesOfOurFormAreRemovedAndNothingElse) {
  const TemporaryFolder run;
  const TemporaryFolder outside;
  const std::string stale = join_path(run.path(), temporary_name(5));
  create_directories(stale);
  write_plain(join_path(stale, "model.safetensors"), "half");
  write_plain(join_path(run.path(), ".latest.tmp-0123abcd"), "checkpoint-5\n");
  const std::string foreign = join_path(run.path(), temporary_name(6));
  create_directories(foreign);
  write_plain(join_path(foreign, "thesis.tex"), "x");
  write_plain(join_path(run.path(), ".latest.tmp-notes"), "x");
  std::filesystem::create_directory_symlink(outside.path(),
                                            join_path(run.path(), temporary_name(7)));
  commit_sample(run.path(), 10);
  const std::vector<std::string> removed = remove_stale_temporaries(run.path());
  EXPECT_EQ(removed.size(), 2U);
  EXPECT_FALSE(path_exists(stale));
  EXPECT_TRUE(path_exists(join_path(foreign, "thesis.tex")));
  EXPECT_TRUE(path_exists(join_path(run.path(), ".latest.tmp-notes")));
  EXPECT_TRUE(path_exists(outside.path()));
  EXPECT_THAT(verify_checkpoint(join_path(run.path(), "checkpoint-10")), IsEmpty());
}

TEST(Layout, RetentionKeepsTheNewestByNumber) {
  std::vector<CheckpointEntry> entries;
  for (const int64_t step : {100000, 900, 10000, 1000, 9900})
    entries.push_back({checkpoint_name(step), step});
  EXPECT_THAT(checkpoints_to_delete(entries, 2, {}),
              ElementsAre("checkpoint-9900", "checkpoint-1000", "checkpoint-900"));
  EXPECT_THAT(checkpoints_to_delete(entries, 2, {"checkpoint-900/", "elsewhere"}),
              ElementsAre("checkpoint-9900", "checkpoint-1000"));
  EXPECT_THAT(checkpoints_to_delete(entries, 5, {}), IsEmpty());
  EXPECT_THAT(checkpoints_to_delete(entries, 0, {}), IsEmpty());
}

}  // namespace
}  // namespace assay::checkpoints
