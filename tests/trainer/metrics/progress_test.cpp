// Speed and time left, against a clock of the test's own.
#include "trainer/metrics/progress.h"

#include <limits>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/files.h"
#include "base/text.h"
#include "tests/trainer/metrics/records.h"

namespace assay::metrics {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

double test_now = 0;  // seconds; only this file's single-threaded tests use it
double test_clock() { return test_now; }

// Sends standard error to another descriptor for its lifetime.
class RedirectedError {
 public:
  explicit RedirectedError(int descriptor) : saved_(::dup(STDERR_FILENO)) {
    ::dup2(descriptor, STDERR_FILENO);
  }
  ~RedirectedError() {
    ::dup2(saved_, STDERR_FILENO);
    ::close(saved_);
  }

 private:
  int saved_;
};

// What a run of steps says when standard error is a file.
std::vector<std::string> lines_in_a_file(const ProgressConfig& config, int64_t last_step,
                                         double seconds_a_step) {
  const TemporaryFolder folder;
  const std::string path = join_path(folder.path(), "terminal.txt");
  const int file = ::open(path.c_str(), O_CREAT | O_WRONLY, 0600);
  {
    const RedirectedError redirected(file);
    Logger logger({});
    test_now = 1000;
    Progress progress(config, logger);
    for (int64_t step = config.first_step + 1; step <= last_step; ++step) {
      test_now += seconds_a_step;
      progress.step_done(step_record(step));
    }
    progress.finish();
  }
  ::close(file);
  std::vector<std::string> lines = split(read_file(path), '\n');
  lines.pop_back();  // after the last newline
  return lines;
}

ProgressConfig with_test_clock(ProgressConfig config) {
  config.clock = test_clock;
  return config;
}

TEST(SessionRate, IsUnknownAtFirst) {
  SessionRate rate;
  EXPECT_EQ(rate.units_per_second(), std::nullopt);
  rate.step_done(91, 5824, 10);
  EXPECT_EQ(rate.units_per_second(), std::nullopt);
  EXPECT_EQ(rate.seconds_left(100), std::nullopt);
}

TEST(SessionRate, CountsThisSessionsStepsOnly) {
  SessionRate rate;  // resumed at 90 % of the run
  rate.step_done(901, 901 * 64, 100);
  for (int64_t step = 902; step <= 911; ++step) {
    rate.step_done(step, step * 64, 100 + 0.5 * static_cast<double>(step - 901));
  }
  EXPECT_DOUBLE_EQ(*rate.units_per_second(), 128.0);  // 64 samples in half a second
  EXPECT_DOUBLE_EQ(*rate.seconds_left(1000), 89 * 0.5);
  EXPECT_DOUBLE_EQ(*rate.seconds_left(900), 0.0);  // never negative
}

TEST(SessionRate, IsUnknownWhileNoTimePasses) {
  SessionRate rate;
  rate.step_done(1, 64, 5);
  rate.step_done(2, 128, 5);
  EXPECT_EQ(rate.units_per_second(), std::nullopt);
}

TEST(Progress, WritesALineEveryFewStepsAndForTheLast) {
  const std::vector<std::string> lines = lines_in_a_file(
      with_test_clock({.first_step = 0, .target_step = 25, .logging_steps = 10}), 25, 0.5);
  ASSERT_EQ(lines.size(), 4u) << join(lines, "\n");
  EXPECT_THAT(lines[0],
              AllOf(HasSubstr("step 10/25"), HasSubstr("loss 2.3026"), HasSubstr("lr 0.1"),
                    HasSubstr("128 samples/s"), HasSubstr("left 7.5 s")));
  EXPECT_THAT(lines[1], HasSubstr("step 20/25"));
  EXPECT_THAT(lines[2], AllOf(HasSubstr("step 25/25"), HasSubstr("left 0")));
  EXPECT_THAT(lines[3], HasSubstr("25 steps in 12"));
}

TEST(Progress, SaysUnknownBeforeItCanKnow) {
  const std::vector<std::string> lines = lines_in_a_file(
      with_test_clock({.first_step = 90, .target_step = 100, .logging_steps = 1}), 92, 2);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_THAT(lines[0], AllOf(HasSubstr("step 91/100"), HasSubstr("speed unknown"),
                              HasSubstr("left unknown")));
  EXPECT_THAT(lines[1], AllOf(HasSubstr("32 samples/s"), HasSubstr("left 16")));
  EXPECT_THAT(lines[2], HasSubstr("2 steps in 4"));
}

TEST(Progress, CountsTokensWhereAsked) {
  const std::vector<std::string> lines = lines_in_a_file(
      with_test_clock({.target_step = 2, .logging_steps = 1, .unit = "tokens"}), 2, 1);
  EXPECT_THAT(lines[1], HasSubstr("8192 tokens/s"));
}

TEST(Progress, IsSilentWithoutLoggingSteps) {
  EXPECT_TRUE(
      lines_in_a_file(with_test_clock({.target_step = 3, .logging_steps = 0}), 3, 1).empty());
}

TEST(Progress, ShowsTheLastStepOfARunThatStopsEarly) {
  const std::vector<std::string> lines =
      lines_in_a_file(with_test_clock({.target_step = 100, .logging_steps = 10}), 13, 1);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_THAT(lines[1], HasSubstr("step 13/100"));
}

TEST(Progress, ShowsNonFiniteLosses) {
  const TemporaryFolder folder;
  const std::string path = join_path(folder.path(), "terminal.txt");
  const int file = ::open(path.c_str(), O_CREAT | O_WRONLY, 0600);
  {
    const RedirectedError redirected(file);
    Logger logger({});
    Progress progress(with_test_clock({.target_step = 1, .logging_steps = 1}), logger);
    StepRecord record = step_record(1);
    record.loss = std::numeric_limits<double>::quiet_NaN();
    progress.step_done(record);
  }
  ::close(file);
  EXPECT_THAT(read_file(path), HasSubstr("loss nan"));
}

TEST(Progress, RewritesOneLineOnATerminal) {
  const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY);
  if (terminal < 0 || ::grantpt(terminal) != 0 || ::unlockpt(terminal) != 0) {
    GTEST_SKIP() << "no pseudo-terminal is available here";
  }
  const int user_side = ::open(::ptsname(terminal), O_RDWR | O_NOCTTY);
  ASSERT_GE(user_side, 0);
  {
    const RedirectedError redirected(user_side);
    Logger logger({});
    test_now = 0;
    Progress progress(with_test_clock({.target_step = 50, .logging_steps = 10}), logger);
    for (int64_t step = 1; step <= 8; ++step) {
      test_now += 0.05;  // four steps a rewrite
      progress.step_done(step_record(step));
    }
  }
  char buffer[4096];
  const ssize_t size = ::read(terminal, buffer, sizeof(buffer));
  ::close(user_side);
  ::close(terminal);
  ASSERT_GT(size, 0);
  const std::string shown(buffer, static_cast<size_t>(size));
  EXPECT_THAT(shown, Not(HasSubstr("\n")));  // one line, rewritten
  EXPECT_THAT(shown, AllOf(HasSubstr("step 1/50"), Not(HasSubstr("step 2/50")),
                           Not(HasSubstr("step 4/50")), HasSubstr("step 5/50")));
}

}  // namespace
}  // namespace assay::metrics
