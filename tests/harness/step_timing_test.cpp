#include "harness/step_timing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "harness/diagnosis.h"
#include "harness/machine_use.h"

namespace assay::harness {
namespace {

using ::testing::HasSubstr;

// 40 steps of 10 ms after three slow ones; a save of 50 ms shows in every tenth record.
std::vector<metrics::StepRecord> timed_steps() {
  std::vector<metrics::StepRecord> steps;
  for (int64_t step = 1; step <= 43; ++step) {
    metrics::StepRecord record;
    record.step = step;
    record.samples_seen = step * 32;
    record.phases.forward_ms = step <= 3 ? 100 : 4;
    record.phases.backward_ms = 5;
    record.phases.data_wait_ms = 0.5;
    record.phases.optimizer_ms = 0.3;
    record.phases.other_ms = 0.2;
    record.time_ms = record.phases.forward_ms + 6;
    if (step % 10 == 0) {
      record.phases.checkpoint_ms = 50;
      record.time_ms += 50;
    }
    record.memory.host_rss_bytes = step == 1 ? 100 : 200 + step % 2;
    steps.push_back(record);
  }
  return steps;
}

TEST(TimeRun, CutsWarmUpAndKeepsSavesApart) {
  const RunTiming run = time_run(timed_steps());
  EXPECT_EQ(run.warm_up.length, 3u);
  EXPECT_EQ(run.first_steady_step, 4);
  EXPECT_EQ(run.last_step, 43);
  EXPECT_DOUBLE_EQ(run.step_ms.median, 10);
  EXPECT_DOUBLE_EQ(run.step_ms.max, 10);
  EXPECT_THAT(run.save_ms, ::testing::ElementsAre(50, 50, 50, 50));
  EXPECT_NEAR(run.checkpoint_seconds, 0.2, 1e-12);
  EXPECT_NEAR(run.samples_per_second, 3200, 1e-6);
  EXPECT_NEAR(phase_share(run, "forward"), 0.4, 1e-12);
  EXPECT_NEAR(phase_share(run, "other"), 0.02, 1e-12);
  EXPECT_EQ(run.rss_after_first_step_bytes, 100);
  EXPECT_EQ(run.peak_rss_bytes, 201);
}

TEST(TimeRun, FindsTheStepWhosePhasesDoNotAddUp) {
  auto steps = timed_steps();
  EXPECT_NEAR(time_run(steps).worst_gap_fraction, 0, 1e-12);
  steps[20].phases.backward_ms -= 2;  // a fifth of its 10 ms is now nowhere
  const RunTiming run = time_run(steps);
  EXPECT_NEAR(run.worst_gap_fraction, 0.2, 1e-12);
  EXPECT_EQ(run.worst_gap_step, 21);
}

TEST(TimeRun, RefusesARunWithoutSteps) {
  EXPECT_THROW(time_run(std::vector<metrics::StepRecord>{}), DataError);
}

TEST(Combine, MeasuresHowFarRunsLieApart) {
  auto slow = timed_steps();
  for (auto& record : slow) {
    record.phases.backward_ms += 1;
    record.time_ms += 1;
  }
  const std::vector<RunTiming> runs = {time_run(timed_steps()), time_run(slow)};
  const TimingOfRuns all = combine(runs, std::vector<double>{10, 10, 11, 11});
  EXPECT_NEAR(all.run_spread_fraction, 1.0 / 10.5, 1e-12);
  EXPECT_DOUBLE_EQ(all.step_ms.median, 10.5);
}

DiagnosisInput input_of(const RunTiming& run) {
  return {.workload = "digits",
          .run = run,
          .cpu_utilisation = 0.9,
          .other_programs = 0.02,
          .is_gpu_present = false,
          .other_limit = 0.05,
          .data_wait_limit = 1.0,
          .save_limit = 0.5,
          .utilisation_limit = 0.3,
          .other_programs_limit = 0.1};
}

TEST(Diagnose, SaysNothingToFixForAComputeBoundRun) {
  const RunTiming run = time_run(timed_steps());
  const auto advice = diagnose(input_of(run));
  ASSERT_EQ(advice.size(), 1u);
  EXPECT_THAT(advice[0].what, HasSubstr("nothing to fix"));
  EXPECT_THAT(advice[0].evidence, HasSubstr("93 %"));
}

TEST(Diagnose, NamesDataWaitFirstWhenItDominates) {
  auto steps = timed_steps();
  for (auto& record : steps) {
    record.phases.data_wait_ms = 30;
    record.time_ms += 29.5;
    record.phases.other_ms += 3;
    record.time_ms += 3;
  }
  const RunTiming run = time_run(steps);
  const auto advice = diagnose(input_of(run));
  ASSERT_EQ(advice.size(), 2u);
  EXPECT_THAT(advice[0].what, HasSubstr("waits for data"));
  EXPECT_THAT(advice[0].next_step, HasSubstr("--num_workers"));
  EXPECT_THAT(advice[1].what, HasSubstr("belongs to no phase"));
}

TEST(Diagnose, BlamesABusyMachineBeforeIdleCpus) {
  const RunTiming run = time_run(timed_steps());
  DiagnosisInput input = input_of(run);
  input.cpu_utilisation = 0.1;
  input.other_programs = 0.8;
  const auto advice = diagnose(input);
  ASSERT_EQ(advice.size(), 1u);
  EXPECT_THAT(advice[0].what, HasSubstr("other programs"));
  EXPECT_THAT(advice[0].evidence, HasSubstr("80 %"));
}

TEST(OtherUseFraction, TakesOutTheTrialsOwnTime) {
  const MachineUse before{100, 0, 10};
  const MachineUse after{115, 0, 20};  // 15 CPU seconds in 10 s
  EXPECT_DOUBLE_EQ(other_use_fraction(before, after, 5, 2), 0.5);
  EXPECT_DOUBLE_EQ(other_use_fraction(before, after, 20, 2), 0);
  EXPECT_DOUBLE_EQ(other_use_fraction(before, before, 0, 2), 0);
}

TEST(ReadMachineUse, OnlyGrows) {
  const auto first = read_machine_use();
  const auto second = read_machine_use();
  ASSERT_TRUE(first && second);
  EXPECT_GT(first->busy_seconds, 0);
  EXPECT_GE(second->busy_seconds, first->busy_seconds);
  EXPECT_GE(second->at_seconds, first->at_seconds);
}

TEST(Diagnose, NamesSavesAndIdleCpus) {
  auto steps = timed_steps();
  for (auto& record : steps) {
    if (record.phases.checkpoint_ms == 0) continue;
    record.phases.checkpoint_ms += 500;
    record.time_ms += 500;
  }
  const RunTiming run = time_run(steps);
  DiagnosisInput input = input_of(run);
  input.cpu_utilisation = 0.1;
  const auto advice = diagnose(input);
  ASSERT_EQ(advice.size(), 2u);
  EXPECT_THAT(advice[0].what, HasSubstr("CPUs are mostly idle"));
  EXPECT_THAT(advice[1].what, HasSubstr("saving takes much"));
}

}  // namespace
}  // namespace assay::harness
