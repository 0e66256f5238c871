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

std::string refusal(const std::string& request, const std::string& run_dir) {
  return thrown_message<CheckpointError>([&] { choose_resume(request, run_dir); });
}

void damage(const std::string& checkpoint) {
  const std::string file = join_path(checkpoint, kOptimizerFile);
  flip_byte(file, file_bytes(file) - 3);
}

TEST(ResumeChoice, AutoStartsAnewWhereNoStepWasTrained) {
  const TemporaryFolder run;
  EXPECT_FALSE(choose_resume("auto", join_path(run.path(), "none")).path);
  EXPECT_FALSE(choose_resume("auto", run.path()).path);
  write_plain(join_path(run.path(), "config.json"), "{}");
  write_plain(join_path(run.path(), "metrics.jsonl"), "");
  EXPECT_FALSE(choose_resume("auto", run.path()).path);
}

TEST(ResumeChoice, AutoNeverStartsAnewOverARun) {
  const TemporaryFolder run;
  write_plain(join_path(run.path(), "metrics.jsonl"), "{\"step\":1}\n");
  EXPECT_THAT(refusal("auto", run.path()),
              AllOf(HasSubstr(run.path()), HasSubstr("another --output_dir")));
}

TEST(ResumeChoice, AutoTakesTheNewestByNumber) {
  const TemporaryFolder run;
  for (const int64_t step : {10000, 9000}) commit_sample(run.path(), step);
  const ResumeChoice choice = choose_resume("auto", run.path());
  EXPECT_EQ(choice.path, join_path(run.path(), "checkpoint-10000"));
  EXPECT_THAT(choice.skipped, IsEmpty());
}

TEST(ResumeChoice, AutoPassesOverDamageAndNamesIt) {
  const TemporaryFolder run;
  commit_sample(run.path(), 10);
  damage(commit_sample(run.path(), 20));
  const std::string third = commit_sample(run.path(), 30);
  std::filesystem::remove(join_path(third, kManifestFile));
  const std::string fourth = commit_sample(run.path(), 40);
  std::filesystem::resize_file(join_path(fourth, kModelFile), 100);
  const ResumeChoice choice = choose_resume("auto", run.path());
  EXPECT_EQ(choice.path, join_path(run.path(), "checkpoint-10"));
  EXPECT_THAT(choice.skipped,
              ElementsAre(HasSubstr("checkpoint-40: model.safetensors is 100 bytes"),
                          HasSubstr("checkpoint-30: has no manifest.json"),
                          HasSubstr("checkpoint-20: optimizer.safetensors")));
}

TEST(ResumeChoice, AutoRefusesIfNothingVerifies) {
  const TemporaryFolder run;
  damage(commit_sample(run.path(), 10));
  damage(commit_sample(run.path(), 20));
  EXPECT_THAT(refusal("auto", run.path()),
              AllOf(HasSubstr("checkpoint-10"), HasSubstr("checkpoint-20"), HasSubstr("Fix: ")));
}

TEST(ResumeChoice, AutoIgnoresASaveThatWasNotCommitted) {
  const TemporaryFolder run;
  const std::string path = commit_sample(run.path(), 10);
  std::filesystem::copy(path, join_path(run.path(), temporary_name(20)));
  EXPECT_EQ(choose_resume("auto", run.path()).path, path);
}

TEST(ResumeChoice, LatestMustExist) {
  const TemporaryFolder run;
  EXPECT_THAT(refusal("latest", run.path()), AllOf(HasSubstr("latest"), HasSubstr(run.path())));
  EXPECT_THAT(refusal("latest", join_path(run.path(), "none")), HasSubstr("not a folder"));
  commit_sample(run.path(), 10);
  std::filesystem::remove(join_path(run.path(), kLatestFile));
  EXPECT_THAT(refusal("latest", run.path()), HasSubstr("checkpoint-10, the newest that verifies"));
}

TEST(ResumeChoice, LatestIsStrictAndNamesTheNewestThatVerifies) {
  const TemporaryFolder run;
  commit_sample(run.path(), 10);
  damage(commit_sample(run.path(), 20));
  EXPECT_THAT(refusal("latest", run.path()),
              AllOf(HasSubstr("checkpoint-20"), HasSubstr("optimizer.safetensors"),
                    HasSubstr(cat("--resume_from_checkpoint ", run.path(),
                                  "/checkpoint-10, the newest that verifies"))));
}

TEST(ResumeChoice, LatestFollowsARunThatWasMovedCopiedOrLinked) {
  const TemporaryFolder parent;
  const std::string before = join_path(parent.path(), "before");
  create_directories(before);
  commit_sample(before, 10);
  const std::string after = join_path(parent.path(), "after");
  std::filesystem::rename(before, after);
  EXPECT_EQ(choose_resume("latest", after).path, join_path(after, "checkpoint-10"));
  const std::string copy = join_path(parent.path(), "copy");
  std::filesystem::copy(after, copy, std::filesystem::copy_options::recursive);
  EXPECT_EQ(choose_resume("latest", copy).path, join_path(copy, "checkpoint-10"));
  const std::string link = join_path(parent.path(), "link");
  std::filesystem::create_directory_symlink(copy, link);
  EXPECT_EQ(choose_resume("latest", link).path, join_path(link, "checkpoint-10"));
  EXPECT_EQ(choose_resume("auto", link).path, join_path(link, "checkpoint-10"));
}

TEST(ResumeChoice, APathIsACheckpointOrARun) {
  const TemporaryFolder run;
  const TemporaryFolder elsewhere;
  const std::string path = commit_sample(run.path(), 10);
  commit_sample(run.path(), 20);
  EXPECT_EQ(choose_resume(path, elsewhere.path()).path, path);
  EXPECT_EQ(choose_resume(path + "/", elsewhere.path()).path, path);
  EXPECT_EQ(choose_resume(run.path(), elsewhere.path()).path,
            join_path(run.path(), "checkpoint-20"));
  const std::string renamed = join_path(run.path(), "nice");
  std::filesystem::rename(path, renamed);
  EXPECT_EQ(choose_resume(renamed, elsewhere.path()).path, renamed);
}

TEST(ResumeChoice, APathThatDoesNotServeIsRefusedWithTheWayOut) {
  const TemporaryFolder run;
  const std::string path = commit_sample(run.path(), 10);
  EXPECT_THAT(
      refusal(join_path(run.path(), "checkpoint-99"), "none"),
      AllOf(HasSubstr("does not exist"), HasSubstr(path), HasSubstr("newest that verifies")));
  EXPECT_THAT(refusal("checkpoint-10", run.path()),
              HasSubstr(cat("Fix: --resume_from_checkpoint ", path)));
  EXPECT_THAT(refusal(join_path(path, kModelFile), "none"),
              HasSubstr(cat("give the folder, ", path)));
  EXPECT_THAT(refusal("", run.path()), HasSubstr("latest or auto"));
  damage(path);
  EXPECT_THAT(refusal(path, "none"), AllOf(HasSubstr("optimizer.safetensors"), HasSubstr("Fix: ")));
}

TEST(ResumeChoice, PicklesAreRefusedWithTheConversion) {
  const TemporaryFolder run;
  const std::string path = join_path(run.path(), "model.pt");
  write_plain(path, "PK\x03\x04 archive/data.pkl and more");
  EXPECT_THAT(refusal(path, run.path()), AllOf(HasSubstr("never read"), HasSubstr("save_file")));
}

TEST(ResumeChoice, AForeignTrainersFolderIsNamed) {
  const TemporaryFolder run;
  const std::string foreign = join_path(run.path(), "checkpoint-500");
  create_directories(foreign);
  write_plain(join_path(foreign, "pytorch_model.bin"), "PK\x03\x04");
  EXPECT_THAT(refusal(foreign, run.path()), HasSubstr("manifest.json is missing"));
  EXPECT_THAT(refusal("auto", run.path()), HasSubstr("checkpoint-500: has no manifest.json"));
}

}  // namespace
}  // namespace assay::checkpoints
