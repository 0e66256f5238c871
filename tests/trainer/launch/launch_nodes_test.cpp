// Several launchers of one job on loopback, driven from outside.
#include <algorithm>
#include <csignal>
#include <fstream>
#include <netinet/in.h>
#include <random>
#include <sys/socket.h>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/text.h"
#include "tests/support/ranks.h"
#include "tests/trainer/launch/launcher.h"

namespace assay::launch {
namespace {

using support::ProgramEnd;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class LaunchNodes : public ::testing::Test {
 protected:
  std::string file(const std::string& name) const { return join_path(folder_.path(), name); }

  // One launcher per node with `ranks[i]` ranks; `extra[i]` are its further options.
  std::vector<LauncherRequest> nodes(const std::vector<int>& ranks,
                                     const std::vector<std::vector<std::string>>& extra,
                                     const std::vector<std::string>& actions) const {
    std::vector<LauncherRequest> requests;
    for (size_t i = 0; i < ranks.size(); ++i) {
      LauncherRequest request;
      request.options = {"--nnodes",        cat(ranks.size()), "--nproc-per-node", cat(ranks[i]),
                         "--rdzv-endpoint", endpoint_,         "--rdzv-conf",      kConf};
      if (i < extra.size()) {
        request.options.insert(request.options.end(), extra[i].begin(), extra[i].end());
      }
      request.actions = actions;
      requests.push_back(request);
    }
    return requests;
  }
  std::string value(int64_t rank, const std::string& name) const {
    for (const std::string& line : split(read_file(cat(file("env"), ".", rank)), '\n')) {
      if (line.starts_with(name + "=")) return line.substr(name.size() + 1);
    }
    return "unset";
  }

  static constexpr const char* kConf = "join_timeout=20";
  TemporaryFolder folder_{"assay-nodes"};
  int64_t port_ = support::free_port();
  std::string endpoint_ = cat("127.0.0.1:", port_);
};

std::string texts(const std::vector<ProgramEnd>& ends) { return support::ends_text(ends); }

TEST_F(LaunchNodes, MeetWithoutNumbers) {
  const auto ends = run_launchers(nodes({2, 1, 2}, {}, {cat("env=", file("env")), "meet"}));
  for (const ProgramEnd& end : ends) ASSERT_EQ(end.code, 0) << texts(ends);
  std::vector<std::string> groups;
  for (int64_t rank = 0; rank < 5; ++rank) {
    EXPECT_EQ(value(rank, "WORLD_SIZE"), "5");
    EXPECT_EQ(value(rank, "GROUP_WORLD_SIZE"), "3");
    groups.push_back(value(rank, "GROUP_RANK"));
  }
  EXPECT_TRUE(std::is_sorted(groups.begin(), groups.end())) << "ranks of a node are neighbours";
}

TEST_F(LaunchNodes, TakeTheNumbersTheyAreGiven) {
  const auto ends = run_launchers(
      nodes({1, 2, 1}, {{"--node-rank", "2"}, {"--node-rank", "0"}, {"--node_rank=1"}},
            {cat("env=", file("env")), "meet"}));
  for (const ProgramEnd& end : ends) ASSERT_EQ(end.code, 0) << texts(ends);
  EXPECT_EQ(value(0, "LOCAL_WORLD_SIZE"), "2");
  EXPECT_EQ(value(2, "GROUP_RANK"), "1");
  EXPECT_EQ(value(3, "GROUP_RANK"), "2");
}

TEST_F(LaunchNodes, MeetAtAnAddressOfIpv6) {
  for (const std::string& endpoint : {cat("[::1]:", port_)}) {
    endpoint_ = endpoint;
    const auto ends = run_launchers(nodes({1, 1}, {}, {cat("env=", file("env")), "meet"}));
    for (const ProgramEnd& end : ends) ASSERT_EQ(end.code, 0) << texts(ends);
    EXPECT_EQ(value(1, "MASTER_ADDR"), "::1");
  }
}

TEST_F(LaunchNodes, MeetAtTheMasterAddressAsStaticTorchrunDoes) {
  auto requests = nodes({1, 1}, {{"--node-rank", "0"}, {"--node-rank", "1"}}, {"meet"});
  for (LauncherRequest& request : requests) {
    const auto endpoint = std::find(request.options.begin(), request.options.end(), endpoint_);
    *(endpoint - 1) = "--master-addr";
    *endpoint = "localhost";
    request.options.insert(request.options.end(), {"--master-port", cat(port_)});
  }
  const auto ends = run_launchers(requests);
  for (const ProgramEnd& end : ends) EXPECT_EQ(end.code, 0) << texts(ends);
}

TEST_F(LaunchNodes, AllEndWithTheFirstFailure) {
  const auto ends = run_launchers(
      nodes({2, 2}, {{"--node-rank", "0"}, {"--node-rank", "1"}},
            {"step=11", "phase=5", "meet", "r3:fail=lost the GPU", "r3:exit=7", "peer"}));
  for (const ProgramEnd& end : ends) {
    EXPECT_EQ(end.code, 7) << texts(ends);
    EXPECT_THAT(end.output, AllOf(HasSubstr("rank 3 (local rank 1"), HasSubstr("step 11"),
                                  HasSubstr("phase backward"), HasSubstr("lost the GPU")));
  }
}

TEST_F(LaunchNodes, BlameTheKilledRankOfAnotherNode) {
  const auto ends =
      run_launchers(nodes({1, 2}, {{"--node-rank", "0"}, {"--node-rank", "1"}},
                          {"step=2", "meet", "r0:sleep=0.05", cat("r0:die=", SIGKILL), "peer"}));
  for (const ProgramEnd& end : ends) {
    EXPECT_EQ(end.code, 137) << texts(ends);
    EXPECT_THAT(end.output, AllOf(HasSubstr("rank 0 "), HasSubstr("SIGKILL")));
  }
}

TEST_F(LaunchNodes, RestartTogether) {
  const auto ends =
      run_launchers(nodes({1, 2}, {{"--max-restarts", "2"}, {"--max-restarts", "2"}},
                          {cat("pid=", file("pid")), "step=3", "meet", "a0:r2:exit=1", "a0:hang"}));
  for (const ProgramEnd& end : ends) EXPECT_EQ(end.code, 0) << texts(ends);
  for (const char* name : {"pid.0.1", "pid.1.1", "pid.2.1"}) {
    EXPECT_TRUE(path_exists(file(name))) << name;
  }
}

TEST_F(LaunchNodes, StopTogetherWhenOneIsAsked) {
  auto requests = nodes({1, 1}, {}, {"obey=0", cat("pid=", file("pid")), "hang"});
  requests[1].watch = signal_when_there({file("pid.0.0"), file("pid.1.0")}, SIGUSR1);
  const auto ends = run_launchers(requests);
  for (const ProgramEnd& end : ends) EXPECT_EQ(end.code, 138) << texts(ends);
}

TEST_F(LaunchNodes, EndWhenALauncherIsKilled) {
  auto requests =
      nodes({1, 1, 1}, {{"--node-rank", "0"}, {"--node-rank", "1"}, {"--node-rank", "2"}},
            {cat("pid=", file("pid")), "hang"});
  requests[1].watch =
      signal_when_there({file("pid.0.0"), file("pid.1.0"), file("pid.2.0")}, SIGKILL);
  const auto ends = run_launchers(requests);
  for (const size_t node : {size_t{0}, size_t{2}}) {
    EXPECT_EQ(ends[node].code, 5) << texts(ends);
    EXPECT_THAT(ends[node].output, HasSubstr("lost node 1 "));
  }
  EXPECT_THAT(survivors(file("pid"), 3), IsEmpty());
}

TEST_F(LaunchNodes, EndWhenTheServingLauncherIsKilled) {
  auto requests = nodes({1, 1}, {{"--node-rank", "0"}, {"--node-rank", "1"}},
                        {cat("pid=", file("pid")), "hang"});
  requests[0].watch = signal_when_there({file("pid.0.0"), file("pid.1.0")}, SIGKILL);
  const auto ends = run_launchers(requests);
  EXPECT_EQ(ends[1].code, 5) << texts(ends);
  EXPECT_THAT(ends[1].output, HasSubstr("lost node 0 "));
  EXPECT_THAT(survivors(file("pid"), 2), IsEmpty());
}

TEST_F(LaunchNodes, EndWhenALauncherFallsSilent) {
  auto requests = nodes({1, 1}, {{"--node-rank", "0"}, {"--node-rank", "1"}},
                        {cat("pid=", file("pid")), "hang"});
  for (LauncherRequest& request : requests) {
    request.options.insert(request.options.end(),
                           {"--rdzv-conf", "keep_alive_interval=0.1,keep_alive_max_attempt=5"});
  }
  requests[1].watch = signal_when_there({file("pid.0.0"), file("pid.1.0")}, SIGSTOP);
  requests[1].limit_seconds = 5;
  const auto ends = run_launchers(requests);
  EXPECT_EQ(ends[0].code, 5) << texts(ends);
  EXPECT_THAT(ends[0].output, AllOf(HasSubstr("lost node 1 "), HasSubstr("silent for 500 ms")));
}

TEST_F(LaunchNodes, RefuseANumberGivenTwice) {
  const auto ends = run_launchers(nodes(
      {1, 1, 1}, {{"--node-rank", "0"}, {"--node-rank", "1"}, {"--node-rank", "1"}}, {"hang"}));
  int num_named = 0;
  for (const ProgramEnd& end : ends) {
    EXPECT_EQ(end.code, 5) << texts(ends);
    if (end.output.find("--node-rank 1 is given twice") != std::string::npos) ++num_named;
  }
  EXPECT_GE(num_named, 2) << texts(ends);
}

TEST_F(LaunchNodes, RefuseAnotherNumberOfNodes) {
  auto requests =
      nodes({1, 1}, {{"--node-rank", "0"}, {"--node-rank", "1", "--nnodes", "3"}}, {"hang"});
  const auto ends = run_launchers(requests);
  for (const ProgramEnd& end : ends) {
    EXPECT_EQ(end.code, 5) << texts(ends);
    EXPECT_THAT(end.output, AllOf(HasSubstr("--nnodes is 3"), HasSubstr("but 2")));
  }
}

TEST_F(LaunchNodes, RefuseAnotherRunAndGoOnWaiting) {
  auto requests =
      nodes({1, 1}, {{"--node-rank", "0", "--rdzv-id", "mine"}, {"--rdzv-id", "mine"}}, {"meet"});
  auto stranger = nodes({1, 1}, {{}, {"--node-rank", "1", "--rdzv-id", "yours"}}, {"meet"})[1];
  requests.push_back(stranger);
  // The second of the job comes only when the stranger has been sent away.
  const std::string go = file("go");
  std::vector<ProgramEnd> ends(3);
  std::thread first([&] { ends[0] = run_launcher(requests[0]); });
  ends[2] = run_launcher(requests[2]);
  ends[1] = run_launcher(requests[1]);
  first.join();
  EXPECT_EQ(ends[0].code, 0) << texts(ends);
  EXPECT_EQ(ends[1].code, 0) << texts(ends);
  EXPECT_EQ(ends[2].code, 5) << texts(ends);
  EXPECT_THAT(ends[2].output, AllOf(HasSubstr("\"yours\""), HasSubstr("\"mine\"")));
}

TEST_F(LaunchNodes, SayWhoDidNotCome) {
  auto requests = nodes({1, 1}, {{"--node-rank", "0"}, {}}, {"hang"});
  requests.pop_back();
  requests[0].options.insert(requests[0].options.end(), {"--rdzv-conf", "join_timeout=0.5"});
  const auto ends = run_launchers(requests);
  EXPECT_EQ(ends[0].code, 5);
  EXPECT_THAT(ends[0].output, AllOf(HasSubstr("not all 2 nodes"), HasSubstr(endpoint_)));
}

TEST_F(LaunchNodes, SayThatNobodyAnswers) {
  auto requests = nodes({1, 1}, {{}, {"--node-rank", "1"}}, {"hang"});
  requests.erase(requests.begin());
  requests[0].options.insert(requests[0].options.end(), {"--rdzv-conf", "join_timeout=0.5"});
  const auto ends = run_launchers(requests);
  EXPECT_EQ(ends[0].code, 5);
  EXPECT_THAT(ends[0].output,
              AllOf(HasSubstr(endpoint_), HasSubstr("Connection refused"), HasSubstr("500 ms")));
}

TEST_F(LaunchNodes, EndAtOnceWhenAskedWhileTheyWait) {
  auto requests = nodes({1, 1}, {{"--node-rank", "0"}, {}}, {"hang"});
  requests.pop_back();
  const double start = monotonic_seconds();
  requests[0].watch = [&, is_sent = false]() mutable {
    if (is_sent || monotonic_seconds() - start < 0.3) return 0;
    is_sent = true;
    return SIGTERM;
  };
  const auto ends = run_launchers(requests);
  EXPECT_EQ(ends[0].code, 143) << texts(ends);
}

// Sends each of these to the port, one connection each, and keeps some of them open.
void send_garbage(int64_t port, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<int> open_ones;
  for (int i = 0; i < 60; ++i) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<uint16_t>(port));
    if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
      close(fd);
      continue;
    }
    std::string bytes(random() % 200000, ' ');
    for (char& byte : bytes) byte = static_cast<char>(random());
    if (i % 4 == 0)
      bytes = R"({"message":"hello","protocol":1e999,"run_id":[[[[[[]]]]]]})"
              "\n";
    if (i % 4 == 1) bytes = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
    if (send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT) < 0 || i % 2 == 0) {
      open_ones.push_back(fd);
    } else {
      close(fd);
    }
  }
  for (const int fd : open_ones) close(fd);
}

TEST_F(LaunchNodes, SurviveGarbageOnTheirPort) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(cat("seed ", seed));
  auto requests = nodes({1, 1}, {{"--node-rank", "0"}, {"--node-rank", "1"}},
                        {"obey=0", cat("pid=", file("pid")), cat("await=", file("done")), "meet"});
  std::vector<ProgramEnd> ends(2);
  std::thread first([&] { ends[0] = run_launcher(requests[0]); });
  const double deadline = monotonic_seconds() + 10;
  while (monotonic_seconds() < deadline) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<uint16_t>(port_));
    const bool is_there = connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
    close(fd);
    if (is_there) break;
  }
  send_garbage(port_, seed);  // while the nodes gather
  std::thread second([&] { ends[1] = run_launcher(requests[1]); });
  while (!path_exists(file("pid.1.0")) && monotonic_seconds() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  send_garbage(port_, seed + 1);  // while the ranks run
  std::ofstream(file("done")) << "1";
  first.join();
  second.join();
  for (const ProgramEnd& end : ends) EXPECT_EQ(end.code, 0) << texts(ends);
}

}  // namespace
}  // namespace assay::launch
