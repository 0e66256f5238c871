// Which rank `assay launch` names when several end, and whom it waits for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/text.h"
#include "tests/trainer/launch/launcher.h"

namespace assay::launch {
namespace {

using support::ProgramEnd;
using ::testing::HasSubstr;

class LaunchBlame : public ::testing::Test {
 protected:
  std::string file(const std::string& name) const { return join_path(folder_.path(), name); }
  TemporaryFolder folder_{"assay-launch"};
};

// In the phase of a save, but only waiting for the rank that is lost.
TEST_F(LaunchBlame, DoesNotWaitForASaveThatCannotCome) {
  const double start = monotonic_seconds();
  const ProgramEnd end =
      run_launcher({.options = {"--nproc-per-node", "2", "--tee", "3"},
                    .actions = {"obey=0", "phase=9", cat("pid=", file("pid")),
                                cat("r1:await=", file("pid.0.0")), "r1:exit=1", "hang"}});
  EXPECT_EQ(end.code, 1);
  EXPECT_THAT(end.output, HasSubstr("rank 1 (local rank 1"));
  EXPECT_LT(monotonic_seconds() - start, 25) << "a save would get 30 s and more";
}

TEST_F(LaunchBlame, BlamesTheRankThatTheOthersName) {
  const ProgramEnd end = run_launcher(
      {.options = {"--nproc-per-node", "3"},
       .actions = {cat("pid=", file("pid")), "r0:blame=1", "r2:blame=1", "r0:fail=1 is behind",
                   cat("r0:await=", file("pid.1.0")), "r0:exit=5",
                   cat("r2:await=", file("pid.1.0")), "r2:exit=5", "hang"}});
  EXPECT_EQ(end.code, 5);
  EXPECT_THAT(end.output, HasSubstr("rank 1 (local rank 1"));
  EXPECT_THAT(end.output, HasSubstr("holds up the others"));
  EXPECT_THAT(end.output, HasSubstr("1 is behind"));
}

}  // namespace
}  // namespace assay::launch
