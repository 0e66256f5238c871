#include "trainer/estimate/run_measurement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "trainer/config/config_io.h"
#include "trainer/metrics/metrics_writer.h"

namespace assay::estimate {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// A run folder whose steps take 10 forward, 20 backward, 3 exposed communication and 5 update; the
// first steps are slow.
class MeasuredRunFolder : public testing::Test {
 protected:
  void write(int64_t steps) const {
    config::RunConfig config;
    config.gradient_accumulation_steps = 2;
    write_file_durably(join_path(path(), "config.json"), config::config_file_text(config),
                       "config");
    metrics::MetricsWriter writer(path(), {.has_tensorboard = false});
    for (int64_t step = 1; step <= steps; ++step) {
      metrics::StepRecord record;
      record.step = step;
      const double slow = step <= 2 ? 100 : step % 2 == 0 ? 1 : -1;
      record.phases = {.data_wait_ms = 1,
                       .h2d_ms = 1,
                       .forward_ms = 8,
                       .backward_ms = 20 + slow,
                       .comm_ms = 3,
                       .optimizer_ms = 5};
      record.time_ms = 38 + slow;
      record.memory.peak_allocated_bytes = 1000 + step;
      writer.append(record);
    }
    writer.sync();
  }
  const std::string& path() const { return folder_.path(); }

 private:
  TemporaryFolder folder_;
};

TEST_F(MeasuredRunFolder, GivesMediansOfOneRanksMicroSteps) {
  write(22);
  const MeasuredRun run = read_measured_run(path());
  EXPECT_EQ(run.step.steps, 17);
  EXPECT_EQ(run.step.forward_ms, 5);
  EXPECT_NEAR(run.step.backward_ms, 10, 0.5);  // the median is one of 19 and 21, halved
  EXPECT_EQ(run.step.update_ms, 5);
  EXPECT_EQ(run.step.peak_allocated_bytes, 1022);
  EXPECT_EQ(run.config.gradient_accumulation_steps, 2);
}

TEST_F(MeasuredRunFolder, MustHaveEnoughSteps) {
  write(9);
  try {
    read_measured_run(path());
    FAIL() << "nothing was thrown";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("9 steps"), HasSubstr("10"), HasSubstr("Fix:")));
  }
}

TEST_F(MeasuredRunFolder, MustBeARunFolder) {
  try {
    read_measured_run(path());
    FAIL() << "nothing was thrown";
  } catch (const CheckpointError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("--from-run"), HasSubstr("config.json")));
  }
}

}  // namespace
}  // namespace assay::estimate
