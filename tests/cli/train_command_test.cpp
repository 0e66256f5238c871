#include <fstream>
#include <sys/stat.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.h"
#include "base/text.h"
#include "tests/cli/program_run.h"

namespace assay::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

// Stands where the trainer would: says how it was called.
class TrainCommand : public testing::Test {
 protected:
  TrainCommand() {
    write_trainer("for word in \"$@\"; do echo \"<$word>\"; done; exit ${CODE:-0}");
  }

  void write_trainer(const std::string& body, mode_t mode = 0755) {
    std::ofstream(trainer()) << "#!/bin/sh\n" << body << "\n";
    chmod(trainer().c_str(), mode);
  }

  std::string trainer() const { return join_path(folder_.path(), "tra iner"); }
  std::string variable() const { return cat("ASSAY_TRAIN='", trainer(), "' "); }

 private:
  TemporaryFolder folder_;
};

TEST_F(TrainCommand, HandsAllWordsToTheTrainer) {
  const ProgramRun run =
      run_assay("train c.json --max_steps=30 'data.path=/a b' '' --no-bf16", variable());
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_EQ(run.output, "<train>\n<c.json>\n<--max_steps=30>\n<data.path=/a b>\n<>\n<--no-bf16>\n");
  EXPECT_THAT(run.errors, IsEmpty());
}

TEST_F(TrainCommand, HandsEstimateToTheTrainer) {
  EXPECT_EQ(run_assay("estimate --world 2 --bf16", variable()).output,
            "<estimate>\n<--world>\n<2>\n<--bf16>\n");
  EXPECT_EQ(run_assay("help estimate", variable()).output, "<estimate>\n<--help>\n");
  EXPECT_EQ(run_assay("estimate", variable() + "CODE=6 ").exit_code, 6);
}

TEST_F(TrainCommand, EndsWithTheTrainersCode) {
  EXPECT_EQ(run_assay("train", variable() + "CODE=7 ").exit_code, 7);
}

TEST_F(TrainCommand, KeepsTheProcessSoThatSignalsArrive) {
  write_trainer("kill -TERM $$; sleep 60");
  EXPECT_EQ(run_assay("train", variable()).exit_code, 128 + 15);
}

TEST_F(TrainCommand, AsksTheTrainerForItsHelp) {
  EXPECT_EQ(run_assay("train --help", variable()).output, "<train>\n<--help>\n");
  EXPECT_EQ(run_assay("help train", variable()).output, "<train>\n<--help>\n");
}

TEST_F(TrainCommand, LeavesFaultsToTheTrainer) {
  EXPECT_EQ(run_assay("train", variable() + "ASSAY_FAULTS=no.such.place=kill ").exit_code, 0);
}

TEST_F(TrainCommand, CouldNotRunWithoutTrainer) {
  const ProgramRun run = run_assay("train", "ASSAY_TRAIN=/absent/trainer ");
  EXPECT_EQ(run.exit_code, 8);
  EXPECT_THAT(run.errors, AllOf(HasSubstr("\"/absent/trainer\" does not exist"),
                                HasSubstr("named by ASSAY_TRAIN"), HasSubstr("Fix: ")));
}

TEST_F(TrainCommand, CouldNotRunWithTrainerThatIsNotExecutable) {
  write_trainer("exit 0", 0644);
  const ProgramRun run = run_assay("train", variable());
  EXPECT_EQ(run.exit_code, 8);
  EXPECT_THAT(run.errors, HasSubstr("is not executable"));
}

TEST_F(TrainCommand, CouldNotRunWithTrainerOfAnotherKind) {
  std::ofstream(trainer()) << "no program";
  const ProgramRun run = run_assay("train", variable());
  EXPECT_EQ(run.exit_code, 8);
  EXPECT_THAT(run.errors, HasSubstr("Exec format error"));
}

// A copy of the program in a folder of its own has no trainer beside it.
TEST_F(TrainCommand, LooksBesideTheProgram) {
  const TemporaryFolder folder;
  const std::string copy = join_path(folder.path(), "assay");
  const ProgramRun run =
      run_assay("--version >/dev/null && env -u ASSAY_TRAIN '" + copy + "' train",
                cat("cp '", ASSAY_PROGRAM, "' '", copy, "' && "));
  EXPECT_EQ(run.exit_code, 8);
  EXPECT_THAT(run.errors, HasSubstr(quoted(join_path(folder.path(), "assay-train"))));
}

}  // namespace
}  // namespace assay::cli
