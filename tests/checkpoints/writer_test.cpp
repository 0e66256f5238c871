#include "checkpoints/writer.h"

#include <csignal>
#include <filesystem>
#include <sys/resource.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/error.h"
#include "tests/checkpoints/sample_state.h"

namespace assay::checkpoints {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> folders_in(const std::string& run_dir) {
  std::vector<std::string> names;
  for (const std::string& name : list_directory(run_dir)) {
    if (is_directory(join_path(run_dir, name))) names.push_back(name);
  }
  return names;
}

TEST(CheckpointWriter, StateComesBackBitForBit) {
  const TemporaryFolder run;
  const SampleState state(10, 4);
  const CommitResult result = commit_checkpoint(request_for(run.path(), state));
  EXPECT_EQ(result.path, join_path(run.path(), "checkpoint-10"));
  const Checkpoint checkpoint = open_checkpoint(result.path);
  EXPECT_EQ(checkpoint.trainer, state.parts.trainer);
  EXPECT_EQ(checkpoint.ranks, state.parts.ranks);
  EXPECT_EQ(checkpoint.manifest.world_size, 4);
  EXPECT_EQ(checkpoint.manifest.state_digest, result.state_digest);
  EXPECT_EQ(state_digest({.model = checkpoint.model->tensors(),
                          .optimizer = checkpoint.optimizer->tensors(),
                          .trainer = checkpoint.trainer,
                          .ranks = checkpoint.ranks})
                .total,
            state_digest(state.parts).total);
  uint64_t bytes = 0;
  for (const std::string& name : list_directory(result.path))
    bytes += file_bytes(join_path(result.path, name));
  EXPECT_EQ(result.bytes, bytes);
  EXPECT_THAT(litter_in(run.path()), IsEmpty());
}

TEST(CheckpointWriter, ManifestIsWrittenLastAndEverythingBeforeItIsNamed) {
  const TemporaryFolder run;
  const std::string path = commit_sample(run.path(), 10);
  std::vector<std::string> named;
  for (const WrittenFile& file : open_checkpoint(path).manifest.files) named.push_back(file.name);
  EXPECT_THAT(named, ElementsAre("model.safetensors", "optimizer.safetensors", "rank_00000.json",
                                 "trainer_state.json"));
}

TEST(CheckpointWriter, KeepsTheNewestOfItsOwn) {
  const TemporaryFolder run;
  for (const int64_t step : {900, 1000, 9900, 10000, 100000}) {
    const SampleState state(step);
    CommitRequest request = request_for(run.path(), state);
    request.save_total_limit = 2;
    commit_checkpoint(request);
  }
  EXPECT_THAT(folders_in(run.path()), ElementsAre("checkpoint-10000", "checkpoint-100000"));
  EXPECT_EQ(read_file(join_path(run.path(), kLatestFile)), "checkpoint-100000\n");
}

TEST(CheckpointWriter, KeepsTheBestBesideTheNewest) {
  const TemporaryFolder run;
  for (const int64_t step : {10, 20, 30, 40}) {
    const SampleState state(step);
    CommitRequest request = request_for(run.path(), state);
    request.save_total_limit = 2;
    request.keep_paths = {join_path(run.path(), "checkpoint-10/")};
    commit_checkpoint(request);
  }
  EXPECT_THAT(folders_in(run.path()),
              ElementsAre("checkpoint-10", "checkpoint-30", "checkpoint-40"));
}

TEST(CheckpointWriter, NeverRemovesWhatTheRunDidNotWrite) {
  const TemporaryFolder run;
  {
    SampleState foreign(5);
    foreign.parts.trainer.run_id = "run-b";
    commit_checkpoint(request_for(run.path(), foreign));
  }
  create_directories(join_path(run.path(), "checkpoint-1"));  // another trainer's
  commit_sample(run.path(), 10);
  std::filesystem::rename(join_path(run.path(), "checkpoint-10"), join_path(run.path(), "keep me"));
  const std::string damaged = commit_sample(run.path(), 15);
  flip_byte(join_path(damaged, kManifestFile), 0);
  for (const int64_t step : {20, 30}) {
    const SampleState state(step);
    CommitRequest request = request_for(run.path(), state);
    request.save_total_limit = 1;
    commit_checkpoint(request);
  }
  EXPECT_THAT(folders_in(run.path()), ElementsAre("checkpoint-1", "checkpoint-15", "checkpoint-30",
                                                  "checkpoint-5", "keep me"));
}

TEST(CheckpointWriter, AnEqualCheckpointIsLeftAlone) {
  const TemporaryFolder run;
  const std::string path = commit_sample(run.path(), 10);
  const std::string manifest = read_file(join_path(path, kManifestFile));
  std::filesystem::remove(join_path(run.path(), kLatestFile));
  EXPECT_EQ(commit_sample(run.path(), 10), path);
  EXPECT_EQ(read_file(join_path(path, kManifestFile)), manifest);
  EXPECT_EQ(read_latest(run.path()), path);
}

TEST(CheckpointWriter, AnotherCheckpointOfTheStepIsAnError) {
  const TemporaryFolder run;
  const std::string path = commit_sample(run.path(), 10);
  SampleState other(10);
  other.set_float(other.parts.model, "conv1.bias", 0, 1);
  const auto commit = [&] { commit_checkpoint(request_for(run.path(), other)); };
  EXPECT_THAT(thrown_message<CheckpointError>(commit),
              AllOf(HasSubstr(path), HasSubstr("another state"), HasSubstr("Fix: ")));
  flip_byte(join_path(path, kModelFile), 200);
  EXPECT_THAT(thrown_message<CheckpointError>(commit),
              AllOf(HasSubstr("does not verify"), HasSubstr("model.safetensors")));
  EXPECT_THAT(litter_in(run.path()), IsEmpty());
}

TEST(CheckpointWriter, RefusesAStateThatLacksARank) {
  const TemporaryFolder run;
  const SampleState state(10, 2);
  CommitRequest request = request_for(run.path(), state);
  request.world_size = 3;
  EXPECT_THROW(commit_checkpoint(request), InternalError);
  request.world_size = 2;
  request.parts.ranks[1].rank = 5;
  EXPECT_THAT(thrown_message<InternalError>([&] { commit_checkpoint(request); }),
              HasSubstr("lacks the state of rank 1"));
}

TEST(CheckpointWriter, RefusesAViewThatContradictsItsShapeBeforeItWrites) {
  const TemporaryFolder run;
  commit_sample(run.path(), 10);
  SampleState state(20);
  const uint64_t claimed = uint64_t{1} << 62;
  state.parts.model.push_back({"huge", "U8", {static_cast<int64_t>(claimed)}, nullptr, 0});
  CommitRequest request = request_for(run.path(), state);
  EXPECT_THROW(commit_checkpoint(request), InternalError);
  EXPECT_THAT(litter_in(run.path()), IsEmpty());
  EXPECT_THAT(folders_in(run.path()), ElementsAre("checkpoint-10"));
}

TEST(CheckpointWriter, MissingRunFolderIsNotMadeUp) {
  const TemporaryFolder parent;
  const std::string run = join_path(parent.path(), "unmounted");
  EXPECT_THAT(thrown_message<CheckpointError>([&] { commit_sample(run, 10); }),
              AllOf(HasSubstr("checkpoint-10"), HasSubstr(run), HasSubstr("Fix: ")));
  EXPECT_FALSE(path_exists(run));
}

// Root may write anywhere: for the time of a test it is nobody.
class Unprivileged {
 public:
  Unprivileged() : before_(::geteuid()) {
    constexpr uid_t kNobody = 65534;
    if (before_ == 0) {
      EXPECT_EQ(::seteuid(kNobody), 0);
    }
  }
  ~Unprivileged() { EXPECT_EQ(::seteuid(before_), 0); }
  Unprivileged(const Unprivileged&) = delete;
  Unprivileged& operator=(const Unprivileged&) = delete;

 private:
  uid_t before_;
};

constexpr auto kReadOnly = static_cast<std::filesystem::perms>(0555);
constexpr auto kOpen = static_cast<std::filesystem::perms>(0777);

TEST(CheckpointWriter, ReadOnlyFolderIsNamed) {
  const TemporaryFolder run;
  std::filesystem::permissions(run.path(), kReadOnly);
  {
    const Unprivileged user;
    EXPECT_THAT(thrown_message<CheckpointError>([&] { commit_sample(run.path(), 10); }),
                AllOf(HasSubstr("permission denied"), HasSubstr(run.path()), HasSubstr("Fix: ")));
  }
  std::filesystem::permissions(run.path(), kOpen);
}

TEST(CheckpointWriter, NeedsNoRightBeyondTheRunFolder) {
  const TemporaryFolder parent;
  const std::string run = join_path(parent.path(), "run");
  create_directories(run);
  std::filesystem::permissions(run, kOpen);
  std::filesystem::permissions(parent.path(), kReadOnly);
  {
    const Unprivileged user;
    EXPECT_THAT(verify_checkpoint(commit_sample(run, 10)), IsEmpty());
    EXPECT_TRUE(choose_resume("latest", run).path);
  }
  std::filesystem::permissions(parent.path(), kOpen);
}

// The kernel itself cuts the write here, no fault point.
TEST(CheckpointWriter, FileSizeLimitLeavesTheOldCheckpoint) {
  const TemporaryFolder run;
  const std::string old = commit_sample(run.path(), 10);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit limit{.rlim_cur = 300, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  const std::string message =
      thrown_message<CheckpointError>([&] { commit_sample(run.path(), 20); });
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_THAT(message, AllOf(HasSubstr("cannot save checkpoint-20"), HasSubstr("file too large"),
                             HasSubstr("checkpoint-10 stands")));
  EXPECT_THAT(litter_in(run.path()), IsEmpty());
  EXPECT_THAT(verify_checkpoint(old), IsEmpty());
}

TEST(CheckpointWriter, WorksInFoldersWithOddNames) {
  const TemporaryFolder parent;
  for (const std::string& name : {std::string("Gr\xc3\xb6\xc3\x9f"
                                              "e \xe6\xb8\xac\xe8\xa9\xa6 e\xcc\x81"),
                                  std::string("with 'quotes\" and, comma"),
                                  std::string("new\nline"), std::string(250, 'n')}) {
    const std::string run = join_path(parent.path(), name);
    create_directories(run);
    const std::string path = commit_sample(run, 10);
    EXPECT_THAT(verify_checkpoint(path), IsEmpty());
    EXPECT_EQ(choose_resume("latest", run).path, path);
  }
}

}  // namespace
}  // namespace assay::checkpoints
