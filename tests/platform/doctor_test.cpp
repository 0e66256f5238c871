#include <fstream>
#include <sys/stat.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "platform/doctor_command.h"
#include "platform/doctor_report.h"
#include "platform/programs.h"

namespace assay::platform {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

// A program that says and returns what the test wants.
class Script {
 public:
  explicit Script(const std::string& body, mode_t mode = 0755) {
    std::ofstream(path()) << "#!/bin/sh\n" << body << "\n";
    chmod(path().c_str(), mode);
  }
  std::string path() const { return join_path(folder_.path(), "assay-train"); }

 private:
  TemporaryFolder folder_;
};

TrainerCheck check_script(const std::string& body) {
  const Script script(body);
  return check_trainer({script.path(), false}, 60);
}

Environment plain_machine() {
  Environment environment;
  environment.host_name = "box";
  environment.cpu.logical_cpus = 64;
  environment.cpu.available_cpus = 2;
  environment.cpu.cgroup_quota_cpus = 2.5;
  environment.memory.total_bytes = uint64_t{32} << 30;
  environment.memory.available_bytes = uint64_t{30} << 30;
  environment.memory.shm_bytes = uint64_t{1} << 30;
  return environment;
}

TrainerCheck usable_trainer() {
  TrainerCheck trainer;
  trainer.path = "/opt/assay-train";
  trainer.is_usable = true;
  trainer.version = "assay-train 0.1.0";
  return trainer;
}

TEST(TrainerCheck, TakesProgramThatLoads) {
  const TrainerCheck check = check_script("[ \"$1\" = --version ] && echo trainer 0.1");
  EXPECT_TRUE(check.is_usable);
  EXPECT_EQ(check.version, "trainer 0.1");
}

TEST(TrainerCheck, RepeatsTheLoadersErrorWithFix) {
  const TrainerCheck check = check_script(
      "echo \"x: error while loading shared libraries: libtorch.so: cannot open\" >&2; exit 127");
  EXPECT_FALSE(check.is_usable);
  EXPECT_THAT(check.problem, AllOf(HasSubstr("code 127"), HasSubstr("libtorch.so")));
  EXPECT_THAT(check.fix, HasSubstr("LD_LIBRARY_PATH"));
}

TEST(TrainerCheck, NamesProgramThatIsMissing) {
  const TrainerCheck check = check_trainer({"/absent/assay-train", false}, 5);
  EXPECT_FALSE(check.is_usable);
  EXPECT_THAT(check.problem, HasSubstr("\"/absent/assay-train\" does not exist"));
  EXPECT_THAT(check.fix, HasSubstr("ASSAY_TRAIN"));
}

TEST(TrainerCheck, NamesTheVariableThatNamedIt) {
  const TrainerCheck check = check_trainer({"/absent/x", true}, 5);
  EXPECT_THAT(check.problem, HasSubstr("named by ASSAY_TRAIN"));
  EXPECT_THAT(check.fix, HasSubstr("unset"));
}

TEST(TrainerCheck, NamesProgramThatIsNotExecutable) {
  const Script script("exit 0", 0644);
  EXPECT_THAT(check_trainer({script.path(), false}, 5).problem, HasSubstr("is not executable"));
}

TEST(TrainerCheck, NamesProgramThatHangs) {
  const Script script("exec sleep 60");
  EXPECT_THAT(check_trainer({script.path(), false}, 0.2).problem, HasSubstr("did not end within"));
}

TEST(TrainerCheck, ShowsNoControlCharacters) {
  EXPECT_THAT(check_script("printf 'a\\033[31mb'").version, Not(HasSubstr("\033")));
}

TEST(DoctorText, ShowsRecordAndNoProblem) {
  Environment environment = plain_machine();
  environment.cpu.logical_cpus = 2;
  environment.cpu.cgroup_quota_cpus = 0;
  const DoctorRecord record = make_doctor_record(environment, usable_trainer());
  const std::string text = doctor_text(record);
  EXPECT_THAT(text, ContainsRegex("host +box"));
  EXPECT_THAT(text, HasSubstr("2 usable of 2 (no cgroup quota)"));
  EXPECT_THAT(text, HasSubstr("training runs on the CPU"));
  EXPECT_THAT(text, HasSubstr("assay-train 0.1.0"));
  EXPECT_THAT(text, HasSubstr("none found"));
  EXPECT_FALSE(has_fatal_problem(record));
}

TEST(DoctorText, ShowsWarningsWithFix) {
  const DoctorRecord record = make_doctor_record(plain_machine(), usable_trainer());
  EXPECT_FALSE(has_fatal_problem(record));
  EXPECT_THAT(doctor_text(record),
              AllOf(HasSubstr("warning     the cgroup quota is 2.5 CPUs"), HasSubstr("Fix: ")));
}

TEST(DoctorText, ShowsGpuWithItsLinks) {
  Environment environment = plain_machine();
  environment.is_gpu_present = true;
  environment.is_nvml_usable = true;
  environment.driver_version = "580.1";
  GpuFacts gpu;
  gpu.name = "H200";
  gpu.compute_major = 9;
  gpu.pcie_width_now = 16;
  environment.gpus = {gpu, gpu};
  environment.topology = "      GPU0\nGPU0  X\n";
  const std::string text = doctor_text(make_doctor_record(environment, usable_trainer()));
  EXPECT_THAT(text, HasSubstr("H200, sm_90"));
  EXPECT_THAT(text, HasSubstr("driver      580.1"));
  EXPECT_THAT(text, HasSubstr("  links             GPU0\n              GPU0  X\n"));
}

TEST(DoctorRecord, PutsTheTrainerBehindTheDriverAndBeforeWarnings) {
  Environment environment = plain_machine();
  environment.is_gpu_present = true;
  environment.nvml_problem = "no driver";
  TrainerCheck trainer;
  trainer.problem = "does not load";
  trainer.fix = "build it";
  const DoctorRecord record = make_doctor_record(environment, trainer);
  ASSERT_GE(record.problems.size(), 3U);
  EXPECT_THAT(record.problems[0].what, HasSubstr("no driver"));
  EXPECT_EQ(record.problems[1].what, "does not load");
  EXPECT_FALSE(record.problems[2].is_fatal);
  EXPECT_TRUE(has_fatal_problem(record));
}

TEST(DoctorJson, HasRecordTrainerAndProblems) {
  TrainerCheck trainer;
  trainer.problem = "does not load";
  trainer.fix = "build it";
  const nlohmann::json json =
      nlohmann::json::parse(doctor_json(make_doctor_record(plain_machine(), trainer)));
  EXPECT_EQ(json.at("environment").at("host_name"), "box");
  EXPECT_FALSE(json.at("trainer").at("is_usable"));
  EXPECT_EQ(json.at("problems").at(0).at("fix"), "build it");
  EXPECT_TRUE(json.at("has_fatal_problem"));
  EXPECT_FALSE(json.at("program").at("version").get<std::string>().empty());
}

TEST(DoctorCommand, RefusesUnknownOptionWithSpelling) {
  const std::vector<std::string> words = {"--jsn"};
  try {
    run_doctor_command(words);
    FAIL() << "accepted --jsn";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("\"--jsn\""), HasSubstr("\"--json\"")));
  }
}

TEST(DoctorCommand, RefusesWrongValues) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"--path"}, {"--path="}, {"--json=yes"}, {"stray"}}) {
    EXPECT_THROW(run_doctor_command(words), ConfigError) << words[0];
  }
}

}  // namespace
}  // namespace assay::platform
