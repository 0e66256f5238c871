#include "trainer/launch/launch_options.h"

#include <csignal>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/text.h"
#include "trainer/launch/launch_option_table.h"

namespace assay::launch {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Variables = std::map<std::string, std::string>;

LaunchOptions parse(std::vector<std::string> words, const Variables& variables = {},
                    bool has_program = true) {
  if (has_program) words.insert(words.end(), {"--", "train"});
  return parse_launch_options(words, [&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

std::string refusal(const std::vector<std::string>& words, const Variables& variables = {},
                    bool has_program = true) {
  try {
    parse(words, variables, has_program);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

// What an option's value did, as text.
struct Case {
  std::string name;
  std::string value;
  std::function<std::string(const LaunchOptions&)> seen;
  std::string expected;
};

std::vector<Case> cases() {
  return {
      {"nproc-per-node", "4", [](const LaunchOptions& o) { return o.num_local_ranks; }, "4"},
      {"nproc-per-node", "auto", [](const LaunchOptions& o) { return o.num_local_ranks; }, "auto"},
      {"nnodes", "1:1", [](const LaunchOptions& o) { return cat(o.num_nodes); }, "1"},
      {"node-rank", "0", [](const LaunchOptions& o) { return cat(*o.node_rank); }, "0"},
      {"role", "worker", [](const LaunchOptions& o) { return o.role; }, "worker"},
      {"numa-binding", "none", [](const LaunchOptions& o) { return o.numa_binding; }, "none"},
      {"rdzv-id", "job-7", [](const LaunchOptions& o) { return o.run_id; }, "job-7"},
      {"rdzv-backend", "c10d", [](const LaunchOptions& o) { return o.run_id; }, "none"},
      {"rdzv-conf", "join_timeout=9,last_call_timeout=1",
       [](const LaunchOptions& o) { return cat(o.join_timeout_seconds); }, "9"},
      {"rdzv-conf", "keep_alive_interval=0.5",
       [](const LaunchOptions& o) { return cat(o.keep_alive_seconds); }, "0.5"},
      {"rdzv-conf", "keep_alive_max_attempt=7",
       [](const LaunchOptions& o) { return cat(o.keep_alive_misses); }, "7"},
      {"master-addr", "[::1]", [](const LaunchOptions& o) { return o.master_addr; }, "::1"},
      {"master-addr", "::1", [](const LaunchOptions& o) { return o.master_addr; }, "::1"},
      {"master-port", "29511", [](const LaunchOptions& o) { return cat(o.store_port); }, "29511"},
      {"local-addr", "10.0.0.1", [](const LaunchOptions& o) { return o.local_addr; }, "10.0.0.1"},
      {"max-restarts", "3", [](const LaunchOptions& o) { return cat(o.max_restarts); }, "3"},
      {"monitor-interval", "2.5",
       [](const LaunchOptions& o) { return cat(o.monitor_interval_seconds); }, "2.5"},
      {"grace-period", "90", [](const LaunchOptions& o) { return cat(*o.grace_seconds); }, "90"},
      {"signals-to-handle", "SIGTERM,SIGUSR1",
       [](const LaunchOptions& o) { return cat(o.signals[0], o.signals[1]); },
       cat(SIGTERM, SIGUSR1)},
      {"log-dir", "logs", [](const LaunchOptions& o) { return o.log_dir; }, "logs"},
      {"tee", "3", [](const LaunchOptions& o) { return cat(o.tee.of(5)); }, "3"},
      {"tee", "0:1,2:3",
       [](const LaunchOptions& o) { return cat(o.tee.of(0), o.tee.of(1), o.tee.of(2)); }, "103"},
      {"local-ranks-filter", "0,2",
       [](const LaunchOptions& o) { return cat(o.shown_ranks.size()); }, "2"},
  };
}

TEST(LaunchOptions, TakeEverySpellingAndTheVariable) {
  for (const Case& one : cases()) {
    std::string underscored = one.name;
    for (char& letter : underscored) letter = letter == '-' ? '_' : letter;
    for (const std::string& name : {one.name, underscored}) {
      EXPECT_EQ(one.seen(parse({cat("--", name, "=", one.value)})), one.expected) << name;
      EXPECT_EQ(one.seen(parse({cat("--", name), one.value})), one.expected) << name;
    }
    const std::string variable = variable_of(launch_option(cat("--", one.name)));
    EXPECT_EQ(one.seen(parse({}, {{variable, one.value}})), one.expected) << variable;
  }
}

TEST(LaunchOptions, TakeRedirectsByRank) {
  const LaunchOptions options = parse({"-r", "0:1,1:2", "--log-dir=x", "-t3"});
  EXPECT_EQ(options.redirects.of(0), 1);
  EXPECT_EQ(options.redirects.of(1), 2);
  EXPECT_EQ(options.redirects.of(2), 0);
  EXPECT_EQ(options.tee.of(7), 3);
}

TEST(LaunchOptions, TakeFlagsAndLetThemBeSwitchedOff) {
  EXPECT_TRUE(parse({"--standalone"}).is_standalone);
  EXPECT_TRUE(parse({}, {{"PET_STANDALONE", "1"}}).is_standalone);
  EXPECT_FALSE(parse({}, {{"PET_STANDALONE", "0"}}).is_standalone);
  EXPECT_FALSE(parse({"--virtual-local-rank=false"}).is_virtual_local_rank);
  EXPECT_NO_THROW(parse({"--no-python"}));
}

TEST(LaunchOptions, WinOverVariables) {
  EXPECT_EQ(parse({"--nproc-per-node=2"}, {{"PET_NPROC_PER_NODE", "8"}}).num_local_ranks, "2");
  EXPECT_EQ(parse({}, {{"PET_NPROC_PER_NODE", ""}}).num_local_ranks, "1");
}

TEST(LaunchOptions, LeaveTheWordsOfTheTrainingAlone) {
  const std::vector<std::string> words = {"--nnodes=1", "train", "--nnodes=9", "a=b", "--", "-x"};
  EXPECT_THAT(parse(words, {}, false).train_words, ElementsAre("--nnodes=9", "a=b", "--", "-x"));
}

TEST(LaunchOptions, SplitFiltersAtSingleCommas) {
  const LaunchOptions options =
      parse({"--log-dir=x", "--duplicate-stderr-filters=apple,a,,b", "-t", "3"});
  EXPECT_THAT(options.stderr_filters, ElementsAre("apple", "a,b"));
}

TEST(LaunchOptions, ReadEndpoints) {
  struct Endpoint {
    std::string text, host;
    int64_t port;
  };
  const std::vector<Endpoint> endpoints = {
      {"host", "host", 29400},         {"host:1234", "host", 1234},
      {"10.0.0.1:5", "10.0.0.1", 5},   {"[::1]:29500", "::1", 29500},
      {"[fd00::2]", "fd00::2", 29400}, {"fd00::2", "fd00::2", 29400}};
  for (const Endpoint& one : endpoints) {
    const LaunchOptions options = parse({"--nnodes=2", cat("--rdzv-endpoint=", one.text)});
    EXPECT_EQ(options.endpoint_host, one.host) << one.text;
    EXPECT_EQ(options.endpoint_port, one.port) << one.text;
  }
}

TEST(LaunchOptions, MeetAtTheMasterAddressWithoutAnEndpoint) {
  const LaunchOptions plain = parse({"--nnodes=2", "--master-addr=a", "--node-rank=1"});
  EXPECT_EQ(plain.endpoint_host, "a");
  EXPECT_EQ(plain.endpoint_port, 29500);
  const LaunchOptions with_port = parse({"--nnodes=2", "--master-addr=a", "--master-port=77"});
  EXPECT_EQ(with_port.endpoint_port, 77);
  EXPECT_EQ(with_port.store_port, 0) << "the meeting has that port";
}

TEST(LaunchOptions, RefuseUnknownNamesWithTheNearest) {
  EXPECT_THAT(refusal({"--nproc-per-nod=2"}), HasSubstr("did you mean \"--nproc-per-node\"?"));
  EXPECT_THAT(refusal({"--max_step=2"}), HasSubstr("--max_step"));
  EXPECT_THAT(refusal({"--zzzzzz"}), HasSubstr("after the word train"));
  EXPECT_THAT(refusal({"--rdzv-conf=join_timeot=3"}), HasSubstr("\"join_timeout\""));
}

TEST(LaunchOptions, SayWhyAnOptionOfTorchrunHasNoMeaning) {
  for (const char* word :
       {"--module", "-m", "--run_path", "--start-method=spawn", "--logs-specs"}) {
    EXPECT_THAT(refusal({word}), AllOf(HasSubstr("has no meaning"), HasSubstr("leave it out")));
  }
}

TEST(LaunchOptions, RefuseBadValuesNamingPlaceValueAndExpectation) {
  const std::vector<std::string> words = {"--nproc-per-node=0",
                                          "--nproc-per-node=-1",
                                          "--nproc-per-node=xpu",
                                          "--nproc-per-node=1e3",
                                          "--nnodes=0",
                                          "--nnodes=a",
                                          "--node-rank=-1",
                                          "--master-port=99999",
                                          "--master-port=x",
                                          "--max-restarts=-1",
                                          "--monitor-interval=0",
                                          "--grace-period=nan",
                                          "--redirects=4",
                                          "--tee=0-1",
                                          "--signals-to-handle=SIGKILL",
                                          "--signals-to-handle=TER",
                                          "--rdzv-backend=etcd",
                                          "--numa-binding=socket",
                                          "--rdzv-id=a/b",
                                          "--rdzv-id=",
                                          "--local-ranks-filter=a",
                                          "--rdzv-conf=join_timeout",
                                          "--standalone=maybe",
                                          "--master-addr=a b"};
  for (const std::string& word : words) {
    const std::string name = word.substr(0, word.find('='));
    EXPECT_THAT(refusal({word}), AllOf(HasSubstr(name), HasSubstr("must be"))) << word;
  }
  EXPECT_THAT(refusal({}, {{"PET_NNODES", "two"}}), AllOf(HasSubstr("PET_NNODES is \"two\"")));
}

TEST(LaunchOptions, RefuseWhatDoesNotFitTogether) {
  EXPECT_THAT(refusal({"--nnodes=1:4"}), AllOf(HasSubstr("\"1:4\""), HasSubstr("--nnodes 4")));
  EXPECT_THAT(refusal({"--nnodes=2"}), HasSubstr("--rdzv-endpoint"));
  EXPECT_THAT(refusal({"--nnodes=2", "--master-addr=a", "--node-rank=2"}),
              AllOf(HasSubstr("is 2"), HasSubstr("below")));
  EXPECT_THAT(refusal({"--standalone", "--nnodes=2"}), HasSubstr("--standalone"));
  EXPECT_THAT(refusal({"--redirects=3"}), HasSubstr("--log-dir"));
  EXPECT_THAT(refusal({"--nnodes=2", "--rdzv-endpoint=a:0"}), HasSubstr("above 0"));
}

TEST(LaunchOptions, RefuseAnyOtherProgram) {
  EXPECT_THAT(refusal({"--", "python", "x.py"}, {}, false), HasSubstr("\"python\""));
  EXPECT_THAT(refusal({}, {}, false), HasSubstr("nothing"));
  EXPECT_THAT(refusal({"--nnodes"}, {}, false), HasSubstr("needs a value"));
}

TEST(LaunchOptions, NameEachOptionInTheHelp) {
  const std::string help = launch_help();
  for (const LaunchOptionSpec& spec : launch_option_specs()) {
    EXPECT_THAT(help, HasSubstr(cat("--", spec.name)));
  }
  EXPECT_TRUE(parse({"--help"}, {}, false).is_help);
  EXPECT_TRUE(parse({"-h"}, {}, false).is_help);
}

}  // namespace
}  // namespace assay::launch
