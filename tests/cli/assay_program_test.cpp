#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/text.h"
#include "base/version.h"
#include "tests/cli/program_run.h"

namespace assay::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

TEST(AssayProgram, PrintsItsVersion) {
  for (const char* line : {"--version", "-V"}) {
    const ProgramRun run = run_assay(line);
    EXPECT_EQ(run.exit_code, 0);
    EXPECT_THAT(run.output, StartsWith("assay     " + version_string() + "\n"));
    EXPECT_THAT(run.output, AllOf(HasSubstr("commit"), HasSubstr("LibTorch"), HasSubstr("CUDA")));
    EXPECT_THAT(run.errors, IsEmpty());
  }
}

TEST(AssayProgram, PrintsItsHelpOnRequest) {
  for (const char* line : {"--help", "-h", "help", "help help"}) {
    const ProgramRun run = run_assay(line);
    EXPECT_EQ(run.exit_code, 0) << line;
    EXPECT_THAT(run.output, StartsWith("Usage: assay COMMAND"));
    for (const char* name : {"accept", "doctor", "verify", "train", "checkpoint", "diff", "data"}) {
      EXPECT_THAT(run.output, HasSubstr(std::string("\n  ") + name)) << line;
    }
    EXPECT_THAT(run.errors, IsEmpty());
  }
}

TEST(AssayProgram, TakesEmptyCommandLineAsUsageError) {
  const ProgramRun run = run_assay("");
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.output, IsEmpty());
  EXPECT_THAT(run.errors, StartsWith("Usage: assay COMMAND"));
}

TEST(AssayProgram, OffersTheNearestSpelling) {
  const ProgramRun run = run_assay("acept");
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_EQ(run.errors, "assay: unknown command \"acept\"; did you mean \"accept\"?\n");
  EXPECT_THAT(run_assay("--verison").errors, HasSubstr("did you mean \"--version\"?"));
}

TEST(AssayProgram, ListsTheCommandsWhenNoneIsNear) {
  const ProgramRun run = run_assay("'fro\tbnicate'");
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.errors, AllOf(HasSubstr("\"fro\\tbnicate\""), HasSubstr("accept, doctor")));
}

TEST(AssayProgram, AsksForTheCommandBeforeOptions) {
  const ProgramRun run = run_assay("--max_steps 30");
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.errors, HasSubstr("e.g. assay train --max_steps"));
}

TEST(AssayProgram, SaysWhatIsNotInThisRelease) {
  for (const char* name : {"compare", "watch", "history", "sample"}) {
    const ProgramRun run = run_assay(std::string(name) + " --help");
    EXPECT_EQ(run.exit_code, 2) << name;
    EXPECT_THAT(run.errors,
                HasSubstr(std::string("assay ") + name + " is not in this release (0.1)"));
  }
}

TEST(AssayProgram, SendsTestToTheSourceFolder) {
  const ProgramRun run = run_assay("test");
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.errors, HasSubstr("./assay test"));
}

TEST(AssayProgram, PrintsTheHelpOfEachCommand) {
  for (const char* name : {"accept", "verify", "diff", "checkpoint", "data", "doctor"}) {
    const ProgramRun direct = run_assay(std::string(name) + " --help");
    EXPECT_EQ(direct.exit_code, 0) << name << ": " << direct.errors;
    EXPECT_THAT(direct.output, HasSubstr(std::string("assay ") + name));
    EXPECT_EQ(run_assay(std::string("help ") + name).output, direct.output);
  }
}

TEST(AssayProgram, TakesOneCommandForHelp) {
  EXPECT_EQ(run_assay("help doctor data").exit_code, 2);
  EXPECT_EQ(run_assay("help nothing").exit_code, 2);
}

TEST(AssayProgram, HandsOptionsToTheCommand) {
  const ProgramRun run = run_assay("doctor --jsn");
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.errors, HasSubstr("did you mean \"--json\"?"));
}

// The exit code must be what the printed record says, whatever machine this is.
TEST(AssayProgram, EndsDoctorWithTheVerdictOfItsRecord) {
  const ProgramRun run = run_assay("doctor --json --path /", "ASSAY_TRAIN=/bin/true ");
  const nlohmann::json record = nlohmann::json::parse(run.output);
  EXPECT_EQ(record.at("environment").at("mounts").at(0).at("mount_point"), "/");
  EXPECT_TRUE(record.at("trainer").at("is_usable"));
  EXPECT_EQ(run.exit_code, record.at("has_fatal_problem") ? 6 : 0);
}

TEST(AssayProgram, EndsDoctorWithSixWhenTheTrainerDoesNotLoad) {
  const ProgramRun run = run_assay("doctor", "ASSAY_TRAIN=/bin/false ");
  EXPECT_EQ(run.exit_code, 6);
  EXPECT_THAT(run.output, AllOf(HasSubstr("fatal"), HasSubstr("\"/bin/false\" --version")));
}

TEST(AssayProgram, RefusesUnknownFaultPoint) {
  const ProgramRun run = run_assay("doctor", "ASSAY_FAULTS=no.such.place=kill ");
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.errors, HasSubstr("no.such.place"));
}

TEST(AssayProgram, NoticesFullStandardOutput) {
  const ProgramRun run = run_assay("--help >/dev/full");
  EXPECT_EQ(run.exit_code, 8);
  EXPECT_THAT(run.errors, HasSubstr("cannot write standard output: No space left on device"));
}

// 141 is 128 + SIGPIPE, without a message, even if the parent ignores that signal. The reader of
// the pipe is gone before the program starts.
TEST(AssayProgram, EndsQuietlyWhenItsReaderIsGone) {
  const TemporaryFolder folder;
  const ProgramRun run = run_assay(
      "--help >&4",
      cat("cd '", folder.path(), "' && mkfifo f && exec 3<>f 4>f 3<&- && trap '' PIPE && "));
  EXPECT_EQ(run.exit_code, 128 + 13);
  EXPECT_EQ(run.errors, "");
}

TEST(AssayProgram, SaysOfLaterWordsThatTheyAreNotInThisRelease) {
  for (const char* line : {"accept --try-advice"}) {
    const ProgramRun run = run_assay(line);
    EXPECT_EQ(run.exit_code, 2) << line;
    EXPECT_THAT(run.errors, AllOf(HasSubstr("not in this release"), HasSubstr("Fix:"))) << line;
  }
}

}  // namespace
}  // namespace assay::cli
