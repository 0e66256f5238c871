// The harness against trainers that are wrong on purpose: each must be caught by the shipped
// program, and the honest one must pass. The trainers are the real one behind a small script.
#include <sys/stat.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/text.h"
#include "tests/support/program.h"

namespace assay {
namespace {

using ::testing::HasSubstr;

class AcceptProgram : public ::testing::Test {
 protected:
  std::string path(std::string_view name) const { return join_path(folder_.path(), name); }

  // The quick suite's resume scenario alone, with one kill and few steps.
  std::string small_suite(const std::string& kill) const {
    nlohmann::json suite =
        nlohmann::json::parse(read_file(ASSAY_SOURCE_DIR "/harness/suites/quick.json"));
    nlohmann::json resume;
    for (const auto& scenario : suite["scenarios"]) {
      if (scenario["name"] == "resume") resume = scenario;
    }
    resume["sizes"]["steps"] = 12;
    resume["sizes"]["save_steps"] = 4;
    resume["checks"]["resume.lost_steps"]["threshold"] = 12;
    resume["lists"]["digits_kills"] = {kill};
    resume["lists"]["text_kills"] = nlohmann::json::array();
    suite["scenarios"] = {resume};
    const std::string file = path("suite.json");
    write_file_durably(file, suite.dump(), "config");
    return file;
  }

  // A trainer that runs `body` first; the words are in "$@", $resumes is 1 in a resumed session.
  std::string trainer(const std::string& body) const {
    const std::string script = path("trainer.sh");
    const std::string text =
        cat("#!/bin/bash\nreal=", ASSAY_TRAIN_PROGRAM,
            "\nresumes=0\nout=\nlast=\nfor word in \"$@\"; do\n"
            "  [ \"$word\" = --resume_from_checkpoint ] && resumes=1\n"
            "  [ \"$last\" = --output_dir ] && out=$word\n  last=$word\ndone\n",
            body, "\nexec \"$real\" \"$@\"\n");
    write_file_durably(script, text, "config");
    chmod(script.c_str(), 0755);
    return script;
  }

  support::ProgramEnd accept(const std::string& body, const std::string& kill) {
    return support::run_program({.command = {ASSAY_PROGRAM, "accept", "--suite-file",
                                             small_suite(kill), "--output", path("report")},
                                 .environment = {{"ASSAY_TRAIN", trainer(body)}},
                                 .working_directory = folder_.path()});
  }

  std::string verdict_of(const std::string& check) const {
    const nlohmann::json report = nlohmann::json::parse(read_file(path("report/report.json")));
    for (const auto& scenario : report["scenarios"]) {
      for (const auto& one : scenario["checks"]) {
        if (one["name"] == check) return one["verdict"].get<std::string>();
      }
    }
    return "absent";
  }

  TemporaryFolder folder_;
};

TEST_F(AcceptProgram, PassesAnHonestTrainer) {
  const auto end = accept("", "train.forward:8");
  EXPECT_EQ(end.code, 0) << end.output;
  EXPECT_EQ(verdict_of("resume.same_as_uninterrupted"), "pass");
  EXPECT_EQ(verdict_of("resume.samples_once"), "pass");
}

TEST_F(AcceptProgram, CatchesATrainerThatStartsAnewInsteadOfResuming) {
  const auto end = accept(
      "if [ $resumes = 1 ]; then\n  rm -rf \"$out\"\n  words=()\n  skip=0\n  for word in \"$@\"; "
      "do\n"
      "    [ $skip = 1 ] && { skip=0; continue; }\n"
      "    [ \"$word\" = --resume_from_checkpoint ] && { skip=1; continue; }\n"
      "    words+=(\"$word\")\n  done\n  exec \"$real\" \"${words[@]}\"\nfi",
      "train.forward:8");
  EXPECT_EQ(end.code, 6) << end.output;
  EXPECT_EQ(verdict_of("resume.resumed_runs_end"), "fail");
  EXPECT_THAT(end.output, HasSubstr("did not go on from checkpoint 4"));
}

TEST_F(AcceptProgram, CatchesStateThatIsNotRestored) {
  for (const char* defect : {"defect.skip_rng_restore=on", "defect.skip_optimizer_restore=on",
                             "defect.step_off_by_one=on", "defect.wrong_lr_after_resume=on"}) {
    remove_tree(path("report"));
    const auto end =
        accept(cat("[ $resumes = 1 ] && export ASSAY_FAULTS='", defect, "'"), "train.forward:8");
    EXPECT_EQ(end.code, 6) << defect << "\n" << end.output;
    EXPECT_EQ(verdict_of("resume.same_as_uninterrupted"), "fail") << defect;
  }
}

TEST_F(AcceptProgram, CatchesSamplesLostOrRepeated) {
  for (const char* defect : {"defect.skip_sample:9=on", "defect.repeat_sample:9=on"}) {
    remove_tree(path("report"));
    const auto end =
        accept(cat("[ $resumes = 1 ] && export ASSAY_FAULTS='", defect, "'"), "train.forward:8");
    EXPECT_EQ(end.code, 6) << defect << "\n" << end.output;
    EXPECT_EQ(verdict_of("resume.same_as_uninterrupted"), "fail") << defect;
  }
}

TEST_F(AcceptProgram, CatchesACrashInTheSessionToBeKilled) {
  const auto end = accept("[ -n \"$ASSAY_FAULTS\" ] && exit 4", "train.forward:8");
  EXPECT_EQ(end.code, 6) << end.output;
  EXPECT_EQ(verdict_of("resume.resumed_runs_end"), "fail");
}

TEST_F(AcceptProgram, CatchesASigtermAnsweredWithZero) {
  const auto end =
      accept("\"$real\" \"$@\" &\npid=$!\ntrap 'kill -9 $pid; exit 0' TERM\nwait $pid\nexit $?",
             "sigterm");
  EXPECT_EQ(end.code, 6) << end.output;
  EXPECT_EQ(verdict_of("resume.sigterm_saves"), "fail");
}

}  // namespace
}  // namespace assay
