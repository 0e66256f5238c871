#include "harness/run_folder.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files.h"
#include "harness/tensor_distance.h"
#include "tests/harness/fabricated_run.h"

namespace assay::harness {
namespace {

using ::testing::HasSubstr;

void write_text(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

TEST(ReadOutcome, NamesAMissingKey) {
  TemporaryFolder folder;
  write_text(join_path(folder.path(), "result.json"), "{\"status\":\"completed\"}");
  try {
    read_outcome(folder.path());
    FAIL() << "nothing was thrown";
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), HasSubstr("result.json has no key \"final_step\""));
  }
}

TEST(ReadIds, LeavesOutATornTailAndNamesABadLine) {
  TemporaryFolder folder;
  const std::string path = join_path(folder.path(), "ids-rank0.jsonl");
  write_text(path, "{\"step\":1,\"epoch\":0,\"ids\":[4,2]}\n{\"step\":2,\"epo");
  const auto lines = read_ids(folder.path());
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].ids, (std::vector<int64_t>{4, 2}));
  write_text(path, "{\"step\":1,\"epoch\":0,\"ids\":[4,2]}\n{\"step\":2}\n");
  try {
    read_ids(folder.path());
    FAIL() << "nothing was thrown";
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), HasSubstr("ids-rank0.jsonl line 2"));
  }
}

TEST(ModelDistance, IsNormWisePerTensor) {
  TemporaryFolder folder;
  const std::string left = join_path(folder.path(), "left");
  const std::string right = join_path(folder.path(), "right");
  FabricatedRun run;
  write_run(right, run);
  run.weight_change = 1.0f;
  write_run(left, run);
  const CheckpointDistance distance =
      model_distance(join_path(left, "checkpoint-10"), join_path(right, "checkpoint-10"));
  // b = (1, 2, 10): the gap of 1 over a norm of sqrt(105).
  EXPECT_NEAR(distance.greatest, 1.0 / 10.246950765959598, 1e-12);
  EXPECT_EQ(distance.greatest_name, "fc.weight");
  EXPECT_EQ(
      model_distance(join_path(right, "checkpoint-5"), join_path(right, "checkpoint-5")).greatest,
      0);
}

TEST(DropWeights, LeavesWhatIsNoCheckpoint) {
  TemporaryFolder folder;
  write_run(join_path(folder.path(), "abandoned-1"), FabricatedRun{});
  drop_weights(folder.path());
  const std::string aside = join_path(folder.path(), "abandoned-1");
  EXPECT_TRUE(path_exists(join_path(aside, "metrics.jsonl")));
  EXPECT_TRUE(path_exists(join_path(aside, "checkpoint-10/manifest.json")));
  EXPECT_FALSE(path_exists(join_path(aside, "checkpoint-10/model.safetensors")));
}

}  // namespace
}  // namespace assay::harness
