#include "harness/metrics_watch.h"

#include <fstream>

#include <gtest/gtest.h>

#include "base/files.h"
#include "base/text.h"

namespace assay::harness {
namespace {

class WatchedFile : public ::testing::Test {
 protected:
  void append(const std::string& text) { std::ofstream(path_, std::ios::app) << text; }
  void replace(const std::string& text) { write_file_durably(path_, text, "evidence"); }
  static std::string line(int64_t step) { return cat("{\"step\":", step, ",\"loss\":1}\n"); }

  TemporaryFolder folder_;
  std::string path_ = join_path(folder_.path(), "metrics.jsonl");
};

TEST_F(WatchedFile, CountsLinesAsTheyComeAndWaitsForWholeOnes) {
  MetricsWatch watch(path_);
  EXPECT_EQ(watch.poll(), 0);
  append(line(1) + "{\"step\":2,");
  EXPECT_EQ(watch.poll(), 1);
  append("\"loss\":1}\n");
  EXPECT_EQ(watch.poll(), 2);
}

TEST_F(WatchedFile, TakesNoEvaluationForAStep) {
  MetricsWatch watch(path_);
  append(line(1) + "{\"event\":\"eval\",\"step\":40}\n");
  EXPECT_EQ(watch.poll(), 1);
}

TEST_F(WatchedFile, OldLinesOfAResumedRunAreNotNew) {
  append(line(1) + line(2) + line(3));
  MetricsWatch watch(path_);
  EXPECT_EQ(watch.poll(3), 0);
  append(line(4));
  EXPECT_EQ(watch.poll(3), 4);
}

TEST_F(WatchedFile, StartsAgainWhenAResumeCutsTheFileBack) {
  append(line(1) + line(2) + line(3));
  MetricsWatch watch(path_);
  replace(line(1) + line(2));
  EXPECT_EQ(watch.poll(3), 0);  // the kept lines are below the first new step
  append(line(3));
  EXPECT_EQ(watch.poll(3), 3);
}

}  // namespace
}  // namespace assay::harness
