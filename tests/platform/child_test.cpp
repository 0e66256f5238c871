#include "platform/child.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay::platform {
namespace {

using testing::HasSubstr;

ChildResult run_shell(const std::string& script, double timeout_seconds = 60) {
  return run_and_capture({"/bin/sh", "-c", script}, timeout_seconds);
}

TEST(Child, KeepsBothOutputsAndTheExitCode) {
  const ChildResult result = run_shell("echo out; echo err >&2; exit 7");
  EXPECT_EQ(result.exit_code, 7);
  EXPECT_EQ(result.output, "out\nerr\n");
  EXPECT_FALSE(result.is_timed_out);
}

TEST(Child, SaysTheSignalThatEndedIt) { EXPECT_EQ(run_shell("kill -9 $$").exit_code, 128 + 9); }

TEST(Child, ReadsEmptyInput) { EXPECT_EQ(run_shell("cat; echo done").output, "done\n"); }

TEST(Child, SaysWhyItCouldNotStart) {
  EXPECT_THAT(run_and_capture({"/absent/program"}, 5).start_error, HasSubstr("No such file"));
}

TEST(Child, IsKilledAtTheTimeLimit) {
  const ChildResult result = run_shell("echo begun; exec sleep 60", 0.2);
  EXPECT_TRUE(result.is_timed_out);
  EXPECT_EQ(result.output, "begun\n");
}

TEST(Child, IsKilledAtTheTimeLimitWithClosedOutputsToo) {
  EXPECT_TRUE(run_shell("exec >&- 2>&-; exec sleep 60", 0.2).is_timed_out);
}

TEST(Child, HasItsOutputCut) {
  const ChildResult result = run_shell("head -c 200000 /dev/zero");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.output.size(), size_t{64} << 10);
}

}  // namespace
}  // namespace assay::platform
