#include "trainer/metrics/metrics_writer.h"

#include <gmock/gmock.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/fault_points.h"
#include "base/text.h"
#include "tests/trainer/metrics/records.h"

namespace assay::metrics {
namespace {

using ::testing::HasSubstr;

// Arms fault points for its lifetime.
class ArmedFaults {
 public:
  explicit ArmedFaults(const char* faults) {
    ::setenv("ASSAY_FAULTS", faults, 1);
    arm_faults_from_environment();
  }
  ~ArmedFaults() {
    ::unsetenv("ASSAY_FAULTS");
    arm_faults_from_environment();
  }
};

std::string metrics_text(const TemporaryFolder& folder) {
  return read_file(join_path(folder.path(), "metrics.jsonl"));
}

size_t num_event_files(const TemporaryFolder& folder) {
  size_t count = 0;
  for (const std::string& name : list_directory(folder.path())) {
    count += name.starts_with("events.out.tfevents.") ? 1 : 0;
  }
  return count;
}

TEST(MetricsWriter, AppendsStepsAndEvaluations) {
  const TemporaryFolder folder;
  MetricsWriter writer(folder.path(), {});
  writer.append(step_record(1));
  writer.append(eval_record(1));
  writer.append(step_record(2));
  writer.sync();
  const MetricsFile file = read_metrics(join_path(folder.path(), "metrics.jsonl"));
  EXPECT_EQ(file.steps.size(), 2u);
  EXPECT_EQ(file.evals.size(), 1u);
  EXPECT_EQ(num_event_files(folder), 1u);
}

TEST(MetricsWriter, GoesOnWhereALogWasCut) {
  const TemporaryFolder folder;
  MetricsWriter(folder.path(), {.has_tensorboard = false}).append(step_record(1));
  MetricsWriter(folder.path(), {.first_step = 1, .has_tensorboard = false}).append(step_record(2));
  EXPECT_EQ(metrics_text(folder),
            to_json_line(step_record(1)) + "\n" + to_json_line(step_record(2)) + "\n");
  EXPECT_EQ(num_event_files(folder), 0u);
}

TEST(MetricsWriter, RefusesAStepThatIsThereAlready) {
  const TemporaryFolder folder;
  MetricsWriter writer(folder.path(), {.first_step = 5, .has_tensorboard = false});
  EXPECT_THROW(writer.append(step_record(5)), InternalError);
  writer.append(step_record(6));
  EXPECT_THROW(writer.append(step_record(6)), InternalError);
  EXPECT_EQ(metrics_text(folder), to_json_line(step_record(6)) + "\n");
}

TEST(MetricsWriter, RefusesToGrowATornLine) {
  const TemporaryFolder folder;
  const std::string path = join_path(folder.path(), "metrics.jsonl");
  write_file_durably(path, "{\"step\":1", "config");
  EXPECT_THROW(MetricsWriter(folder.path(), {}), InternalError);
}

TEST(MetricsWriter, LeavesNoTornLineWhenTheDiskIsFull) {
  const TemporaryFolder folder;
  MetricsWriter writer(folder.path(), {.has_tensorboard = false});
  writer.append(step_record(1));
  {
    const ArmedFaults faults("metrics.write=errno:ENOSPC");
    try {
      writer.append(step_record(2));
      FAIL() << "the write did not fail";
    } catch (const FileError& error) {
      EXPECT_THAT(error.what(), HasSubstr("metrics.jsonl"));
      EXPECT_EQ(error.error_number(), ENOSPC);
    }
  }
  const MetricsFile file = read_metrics(join_path(folder.path(), "metrics.jsonl"));
  EXPECT_EQ(file.steps.size(), 1u);
  EXPECT_FALSE(file.has_torn_tail);
}

TEST(MetricsWriter, CanPlantADoubleLineForTheHarnessToCatch) {
  const TemporaryFolder folder;
  MetricsWriter writer(folder.path(), {.has_tensorboard = false});
  {
    const ArmedFaults faults("defect.duplicate_log_line:2=on");
    for (int64_t step = 1; step <= 3; ++step) writer.append(step_record(step));
  }
  const MetricsFile file = read_metrics(join_path(folder.path(), "metrics.jsonl"));
  ASSERT_EQ(file.steps.size(), 4u);
  EXPECT_EQ(file.steps[1].step, 2);
  EXPECT_EQ(file.steps[2].step, 2);
}

}  // namespace
}  // namespace assay::metrics
