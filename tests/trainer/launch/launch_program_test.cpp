// `assay launch` on one node, driven from outside.
#include <chrono>
#include <csignal>
#include <fstream>
#include <sys/stat.h>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/text.h"
#include "tests/support/ranks.h"
#include "tests/trainer/launch/launcher.h"
#include "trainer/launch/address.h"

namespace assay::launch {
namespace {

using support::ProgramEnd;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::map<std::string, std::string> variables_in(const std::string& file) {
  std::map<std::string, std::string> variables;
  for (const std::string& line : split(read_file(file), '\n')) {
    const size_t equals = line.find('=');
    if (equals != std::string::npos) variables[line.substr(0, equals)] = line.substr(equals + 1);
  }
  return variables;
}

std::string last_line(const std::string& text) {
  const std::string bare = trimmed(text);
  return bare.substr(bare.rfind('\n') + 1);
}

class LaunchProgram : public ::testing::Test {
 protected:
  std::string file(const std::string& name) const { return join_path(folder_.path(), name); }
  std::vector<std::string> files(const std::string& name, int64_t num_ranks) const {
    std::vector<std::string> names;
    for (int64_t rank = 0; rank < num_ranks; ++rank)
      names.push_back(file(cat(name, ".", rank, ".0")));
    return names;
  }
  TemporaryFolder folder_{"assay-launch"};
};

TEST_F(LaunchProgram, GivesEachRankItsPlace) {
  const ProgramEnd end = run_launcher({.options = {"--nproc-per-node", "3", "--max_restarts=2"},
                                       .actions = {cat("env=", file("env")), "meet"}});
  ASSERT_EQ(end.code, 0) << end.output;
  for (int64_t rank = 0; rank < 3; ++rank) {
    auto variables = variables_in(cat(file("env"), ".", rank));
    EXPECT_EQ(variables["RANK"], cat(rank));
    EXPECT_EQ(variables["LOCAL_RANK"], cat(rank));
    EXPECT_EQ(variables["WORLD_SIZE"], "3");
    EXPECT_EQ(variables["LOCAL_WORLD_SIZE"], "3");
    EXPECT_EQ(variables["MASTER_ADDR"], "127.0.0.1");
    EXPECT_EQ(variables["TORCHELASTIC_MAX_RESTARTS"], "2");
    EXPECT_EQ(variables["TORCHELASTIC_USE_AGENT_STORE"], "False");
    EXPECT_EQ(variables.count("ASSAY_STORE_FD"), rank == 0 ? 1U : 0U);
    EXPECT_EQ(variables.count("ASSAY_PROGRESS_FD"), 1U);
  }
}

TEST_F(LaunchProgram, PassesTheTrainingWordsOnUnchanged) {
  const ProgramEnd end =
      run_launcher({.options = {"--nproc-per-node=1"}, .actions = {"say=a b  'c' --nnodes=7 $X"}});
  EXPECT_EQ(end.code, 0);
  EXPECT_THAT(end.output, HasSubstr("a b  'c' --nnodes=7 $X\n"));
}

TEST_F(LaunchProgram, EndsWithTheCodeOfTheRankThatFailed) {
  struct Case {
    std::string action;
    int code;
    std::string text;
  };
  const std::vector<Case> cases = {{"exit=1", 1, "exit code 1"},
                                   {"exit=2", 2, "exit code 2"},
                                   {"exit=139", 139, "exit code 139"},
                                   {cat("die=", SIGSEGV), 128 + SIGSEGV, "SIGSEGV"},
                                   {cat("die=", SIGKILL), 128 + SIGKILL, "SIGKILL"},
                                   {"throw", 128 + SIGABRT, "SIGABRT"}};
  for (const Case& one : cases) {
    // The others have ended well by then: their 0 must not hide it.
    const ProgramEnd end =
        run_launcher({.options = {"--nproc-per-node", "3"},
                      .actions = {"step=7", "phase=9", cat("pid=", file("pid")),
                                  cat("r1:await=", file("pid.0.0")),
                                  cat("r1:await=", file("pid.2.0")), cat("r1:", one.action)}});
    EXPECT_EQ(end.code, one.code) << one.action << end.output;
    EXPECT_THAT(last_line(end.output), AllOf(HasSubstr("rank 1 (local rank 1"), HasSubstr(one.text),
                                             HasSubstr("step 7, phase checkpoint")));
  }
}

TEST_F(LaunchProgram, EndsWithTheRanksOwnWords) {
  const ProgramEnd end = run_launcher({.options = {"--nproc-per-node", "2"},
                                       .actions = {"r1:fail=disk full (runs/a). Fix: free it",
                                                   "r1:err=noise", "r1:exit=4", "hang"}});
  EXPECT_EQ(end.code, 4);
  EXPECT_THAT(last_line(end.output), EndsWith("rank 1 said: disk full (runs/a). Fix: free it"));
}

TEST_F(LaunchProgram, BlamesTheKilledRankAndNotThePeersThatLostIt) {
  // Rank 0 keeps the connections: its end makes the others end with 5, maybe sooner than it is
  // seen.
  const ProgramEnd end = run_launcher(
      {.options = {"--nproc-per-node", "4"},
       .actions = {"step=3", "meet", "r0:sleep=0.05", cat("r0:die=", SIGKILL), "peer"}});
  EXPECT_EQ(end.code, 137);
  EXPECT_THAT(last_line(end.output), AllOf(HasSubstr("rank 0 "), HasSubstr("SIGKILL")));
}

TEST_F(LaunchProgram, BlamesAStoppedRank) {
  const ProgramEnd end = run_launcher(
      {.options = {"--nproc-per-node", "3"},
       .actions = {"step=5", cat("r2:die=", SIGSTOP), "sleep=0.2", "r0:exit=5", "hang"}});
  EXPECT_EQ(end.code, 5);
  EXPECT_THAT(end.output, AllOf(HasSubstr("rank 2 "), HasSubstr("SIGSTOP")));
}

TEST_F(LaunchProgram, KillsARankThatIgnoresSigterm) {
  const double start = monotonic_seconds();
  const ProgramEnd end = run_launcher(
      {.options = {"--nproc-per-node", "2"},
       .actions = {cat("ignore=", SIGTERM), cat("pid=", file("pid")), "r1:exit=1", "hang"}});
  EXPECT_EQ(end.code, 1);
  EXPECT_THAT(last_line(end.output), HasSubstr("rank 1 "));
  EXPECT_LT(monotonic_seconds() - start, 5) << "a rank that hangs has nothing to save";
}

TEST_F(LaunchProgram, LetsASaveEndAfterAFailure) {
  const ProgramEnd end =
      run_launcher({.options = {"--nproc-per-node", "2", "--tee", "3"},
                    .actions = {"obey=4", "r0:phase=9", "r0:writing=1", cat("pid=", file("pid")),
                                cat("r1:await=", file("pid.0.0")), "r1:exit=1", "hang"}});
  EXPECT_EQ(end.code, 1);
  EXPECT_THAT(end.output, Not(HasSubstr("is killed")));
}

TEST_F(LaunchProgram, LeavesNothingBehindWhenItIsKilled) {
  const ProgramEnd end =
      run_launcher({.options = {"--nproc-per-node", "2", "--log-dir", file("logs"), "--tee", "3"},
                    .actions = {cat("ignore=", SIGTERM), cat("env=", file("env")),
                                cat("pid=", file("pid")), "hang"},
                    .watch = signal_when_there(files("pid", 2), SIGKILL)});
  EXPECT_EQ(end.code, 137);
  EXPECT_THAT(survivors(file("pid"), 2), IsEmpty());
  const auto port = parse_int64(variables_in(file("env.0"))["MASTER_PORT"]);
  ASSERT_TRUE(port);
  EXPECT_THAT(connect_problem("127.0.0.1", *port, 1), HasSubstr("refused"));
}

TEST_F(LaunchProgram, ForwardsSignalsAndEndsAsTheRanksDo) {
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2}) {
    const std::string name = cat("pid", number);
    const ProgramEnd end = run_launcher({.options = {"--nproc-per-node", "2"},
                                         .actions = {"obey=0.05", cat("pid=", file(name)), "hang"},
                                         .watch = signal_when_there(files(name, 2), number)});
    EXPECT_EQ(end.code, 128 + number) << end.output;
    EXPECT_THAT(end.output, AllOf(HasSubstr("grace"), Not(HasSubstr("was killed by"))));
  }
}

TEST_F(LaunchProgram, ForwardsASignalThatComesBeforeTheRanksCanHandleIt) {
  const ProgramEnd end = run_launcher({.options = {"--nproc-per-node", "2"},
                                       .actions = {cat("pid=", file("pid")), "hang"},
                                       .watch = signal_when_there({file("pid.0.0")}, SIGTERM)});
  EXPECT_EQ(end.code, 143) << end.output;
}

TEST_F(LaunchProgram, KillsEverythingAtTheSecondSignal) {
  int num_sent = 0;
  double first_at = 0;
  const auto watch = [&] {
    const double now = monotonic_seconds();
    const bool is_due =
        (num_sent == 0 && path_exists(file("pid.0.0")) && path_exists(file("pid.1.0"))) ||
        (num_sent == 1 && now - first_at > 0.3);
    if (!is_due) return 0;
    first_at = now;
    ++num_sent;
    return SIGINT;
  };
  const ProgramEnd end = run_launcher({.options = {"--nproc-per-node", "2"},
                                       .actions = {"obey=600", cat("pid=", file("pid")), "hang"},
                                       .watch = watch});
  EXPECT_EQ(end.code, 130);
  EXPECT_THAT(survivors(file("pid"), 2), IsEmpty());
}

TEST_F(LaunchProgram, KillsWhatOutlivesTheGracePeriod) {
  const ProgramEnd end =
      run_launcher({.options = {"--nproc-per-node", "2", "--grace-period", "0.5"},
                    .actions = {"r0:obey=600", "r1:obey=0", cat("pid=", file("pid")), "hang"},
                    .watch = signal_when_there(files("pid", 2), SIGTERM)});
  EXPECT_EQ(end.code, 137);
  EXPECT_THAT(last_line(end.output), AllOf(HasSubstr("rank 0 "), HasSubstr("grace period")));
}

TEST_F(LaunchProgram, GivesMoreTimeWhereSavesTakeLonger) {
  const ProgramEnd end =
      run_launcher({.options = {"--nproc-per-node", "1"},
                    .actions = {"obey=0", "save=45", cat("pid=", file("pid")), "hang"},
                    .watch = signal_when_there({file("pid.0.0")}, SIGTERM)});
  EXPECT_EQ(end.code, 143);
  EXPECT_THAT(end.output, HasSubstr("1 min 40 s"));  // 2 x 45 + 10
}

TEST_F(LaunchProgram, RestartsTheWholeGroupAndCounts) {
  const ProgramEnd end =
      run_launcher({.options = {"--nproc-per-node", "2", "--max-restarts", "3"},
                    .actions = {"a0:step=5", "a1:step=9", cat("pid=", file("pid")), "meet",
                                "a0:r1:exit=1", "a1:r0:exit=7", "a0:hang", "a1:hang"}});
  EXPECT_EQ(end.code, 0) << end.output;
  for (const char* name : {"pid.0.2", "pid.1.2"}) EXPECT_TRUE(path_exists(file(name))) << name;
  EXPECT_FALSE(path_exists(file("pid.0.3")));
}

TEST_F(LaunchProgram, DoesNotRestartTwiceWithoutProgress) {
  const ProgramEnd end = run_launcher({.options = {"--nproc-per-node", "1", "--max-restarts", "9"},
                                       .actions = {"step=5", cat("pid=", file("pid")), "exit=1"}});
  EXPECT_EQ(end.code, 1);
  EXPECT_TRUE(path_exists(file("pid.0.1")));
  EXPECT_FALSE(path_exists(file("pid.0.2")));
  EXPECT_THAT(end.output, HasSubstr("beyond 5"));
}

TEST_F(LaunchProgram, DoesNotRetryWhatWouldFailAgain) {
  for (const int code : {2, 3, 4}) {
    const std::string name = cat("pid", code);
    const ProgramEnd end =
        run_launcher({.options = {"--nproc-per-node", "2", "--max-restarts", "3"},
                      .actions = {cat("pid=", file(name)), "r0:fail=no such option",
                                  cat("r0:exit=", code), "hang"}});
    EXPECT_EQ(end.code, code);
    EXPECT_FALSE(path_exists(file(cat(name, ".0.1")))) << end.output;
    EXPECT_THAT(last_line(end.output), EndsWith("no such option"));
  }
}

TEST_F(LaunchProgram, DoesNotRestartAfterASignalToStop) {
  const ProgramEnd end = run_launcher({.options = {"--nproc-per-node", "1", "--max-restarts", "3"},
                                       .actions = {"obey=0", cat("pid=", file("pid")), "hang"},
                                       .watch = signal_when_there({file("pid.0.0")}, SIGTERM)});
  EXPECT_EQ(end.code, 143);
  EXPECT_FALSE(path_exists(file("pid.0.1")));
}

TEST_F(LaunchProgram, TwoAtOnceDoNotShareAPort) {
  for (int round = 0; round < 20; ++round) {
    const LauncherRequest request{.options = {"--nproc-per-node", "2"}, .actions = {"meet"}};
    for (const ProgramEnd& end : run_launchers({request, request})) {
      ASSERT_EQ(end.code, 0) << "round " << round << ": " << end.output;
    }
  }
}

TEST_F(LaunchProgram, NamesPortAndOptionWhereAPortIsTaken) {
  const std::string port = cat(support::free_port());
  const LauncherRequest holder{.options = {"--nproc-per-node", "1", "--master-port", port},
                               .actions = {cat("pid=", file("pid")), cat("await=", file("done"))}};
  const LauncherRequest second{.options = {"--nproc-per-node", "1", cat("--master_port=", port)},
                               .actions = {"exit=0"}};
  ProgramEnd refused;
  std::thread other([&] {
    while (!path_exists(file("pid.0.0"))) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    refused = run_launcher(second);
    std::ofstream(file("done")) << "1";
  });
  const ProgramEnd held = run_launcher(holder);
  other.join();
  EXPECT_EQ(held.code, 0) << held.output;
  EXPECT_EQ(refused.code, 5);
  EXPECT_THAT(refused.output, AllOf(HasSubstr(port), HasSubstr("--master-port")));
}

TEST_F(LaunchProgram, MeetsOnLoopbackWhateverTheHostIsCalled) {
  for (const char* given : {"::1", "[::1]", "some-pod-0.some-job"}) {
    const ProgramEnd end =
        run_launcher({.options = {"--nproc-per-node", "2", "--master-addr", given},
                      .actions = {cat("env=", file("env")), "meet"}});
    ASSERT_EQ(end.code, 0) << given << end.output;
    const bool is_ipv6 = std::string_view(given).find("::1") != std::string_view::npos;
    EXPECT_EQ(variables_in(file("env.1"))["MASTER_ADDR"], is_ipv6 ? "::1" : "127.0.0.1");
  }
}

TEST_F(LaunchProgram, TeesWithPrefixesAndIntoFiles) {
  const ProgramEnd end = run_launcher(
      {.options = {"--nproc-per-node", "2", "--log-dir", file("logs"), "--rdzv-id", "job7", "-t",
                   "3", "--duplicate-stdout-filters", "apple,pear"},
       .actions = {"r0:say=an apple", "r1:say=a plum", "r1:err=oh", "r1:raw=half a line"}});
  EXPECT_EQ(end.code, 0) << end.output;
  EXPECT_THAT(end.output, AllOf(HasSubstr("[default0]:an apple\n"), HasSubstr("[default1]:oh\n"),
                                HasSubstr("[default1]:half a line\n")));
  const std::vector<std::string> runs = list_directory(file("logs"));
  ASSERT_EQ(runs.size(), 1U);
  EXPECT_THAT(runs[0], ::testing::MatchesRegex("job7_........"));
  const std::string attempt = join_path(join_path(file("logs"), runs[0]), "attempt_0");
  EXPECT_EQ(read_file(join_path(attempt, "0/stdout.log")), "an apple\n");
  EXPECT_EQ(read_file(join_path(attempt, "1/stdout.log")), "a plum\nhalf a line");
  EXPECT_EQ(read_file(join_path(attempt, "1/stderr.log")), "oh\n");
  EXPECT_EQ(read_file(join_path(attempt, "filtered_stdout.log")), "[default0]:an apple\n");
}

TEST_F(LaunchProgram, RedirectsByRank) {
  const ProgramEnd end = run_launcher(
      {.options = {"--nproc-per-node", "2", "--log-dir", file("logs"), "--redirects", "0:1,1:2"},
       .actions = {"say=out", "err=error"}});
  EXPECT_EQ(end.code, 0);
  const std::string attempt = cat(file("logs"), "/", list_directory(file("logs"))[0], "/attempt_0");
  EXPECT_EQ(read_file(join_path(attempt, "0/stdout.log")), "out\n");
  EXPECT_EQ(read_file(join_path(attempt, "1/stderr.log")), "error\n");
  EXPECT_FALSE(path_exists(join_path(attempt, "0/stderr.log")));
  EXPECT_FALSE(path_exists(join_path(attempt, "1/stdout.log")));
  EXPECT_THAT(end.output, AllOf(HasSubstr("out\n"), HasSubstr("error\n")));
}

TEST_F(LaunchProgram, ShowsOnlyTheRanksAskedFor) {
  const ProgramEnd end =
      run_launcher({.options = {"--nproc-per-node", "2", "--local-ranks-filter", "1"},
                    .actions = {"r0:say=hidden", "r1:say=shown"}});
  EXPECT_THAT(end.output, AllOf(HasSubstr("shown"), Not(HasSubstr("hidden"))));
}

TEST_F(LaunchProgram, UsesThePrefixTemplateOfTorchrun) {
  const ProgramEnd end = run_launcher(
      {.options = {"--nproc-per-node", "1", "--tee", "3", "--role", "worker"},
       .actions = {"say=x"},
       .environment = {{"TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE", "<${role_name}-${rank}> "}}});
  EXPECT_THAT(end.output, HasSubstr("<worker-0> x\n"));
}

TEST_F(LaunchProgram, ReadsTorchrunsVariablesAndLetsTheWordsWin) {
  const std::map<std::string, std::string> environment = {
      {"PET_NPROC_PER_NODE", "3"}, {"PET_NNODES", "1"}, {"PET_MASTER_PORT", "0"}};
  EXPECT_EQ(
      run_launcher(
          {.options = {}, .actions = {cat("pid=", file("three"))}, .environment = environment})
          .code,
      0);
  EXPECT_TRUE(path_exists(file("three.2.0")));
  EXPECT_EQ(run_launcher({.options = {"--nproc_per_node=1"},
                          .actions = {cat("pid=", file("one"))},
                          .environment = environment})
                .code,
            0);
  EXPECT_FALSE(path_exists(file("one.1.0")));
}

TEST_F(LaunchProgram, WritesNothingWithoutALogFolder) {
  const std::string own = file("tmp");
  ASSERT_EQ(mkdir(own.c_str(), 0700), 0);
  const ProgramEnd end = run_launcher({.options = {"--nproc-per-node", "2", "--tee", "3"},
                                       .actions = {"r1:fail=told in memory", "r1:exit=1", "hang"},
                                       .environment = {{"TMPDIR", own}}});
  EXPECT_EQ(end.code, 1);
  EXPECT_THAT(last_line(end.output), EndsWith("told in memory"));
  EXPECT_THAT(list_directory(own), IsEmpty());
}

TEST_F(LaunchProgram, SaysWhatCannotBeStarted) {
  const std::string broken = file("broken");
  std::ofstream(broken) << "no program";
  ASSERT_EQ(chmod(broken.c_str(), 0700), 0);
  support::ProgramRequest request;
  request.command = {ASSAY_PROGRAM, "launch", "train"};
  request.environment = {{"ASSAY_TRAIN", broken}};
  const ProgramEnd end = support::run_program(request);
  EXPECT_EQ(end.code, 8);
  EXPECT_THAT(end.output, HasSubstr(broken));
}

}  // namespace
}  // namespace assay::launch
