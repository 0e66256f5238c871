// The serving side against nodes that vanish, fall silent, do not fit or are no launchers.
#include "trainer/launch/rendezvous_server.h"

#include <future>
#include <sys/socket.h>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "trainer/launch/address.h"
#include "trainer/launch/endpoint.h"
#include "trainer/launch/rendezvous_client.h"

namespace assay::launch {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr double kPatienceSeconds = 10;  // for what comes within milliseconds on an idle machine

// A connection whose every byte the test decides.
class RawNode {
 public:
  explicit RawNode(int64_t port) : fd_(connect_to("127.0.0.1", port, kPatienceSeconds, "")) {
    fcntl(fd_, F_SETFL, fcntl(fd_, F_GETFL) & ~O_NONBLOCK);
  }
  ~RawNode() {
    if (fd_ >= 0) close(fd_);
  }
  RawNode(const RawNode&) = delete;
  RawNode& operator=(const RawNode&) = delete;

  // What the other side takes: it may close in the middle.
  void say(const std::string& bytes) const {
    size_t sent = 0;
    while (sent < bytes.size()) {
      const ssize_t count = send(fd_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (count <= 0) return;
      sent += static_cast<size_t>(count);
    }
  }
  void join(const RendezvousRequest& request, int64_t attempt = 0) const {
    say(to_line({.kind = MessageKind::kHello, .hello = hello_of(request)}));
    say(to_line({.kind = MessageKind::kReady, .number = attempt}));
  }
  bool is_sent_away() const {
    const double deadline = monotonic_seconds() + kPatienceSeconds;
    char bytes[4096];
    while (monotonic_seconds() < deadline) {
      pollfd waiting{fd_, POLLIN, 0};
      if (poll(&waiting, 1, 100) == 1 && recv(fd_, bytes, sizeof(bytes), 0) <= 0) return true;
    }
    return false;
  }
  void vanish() {  // as a machine does that starts again: a reset, no farewell
    const linger at_once{1, 0};
    setsockopt(fd_, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    close(std::exchange(fd_, -1));
  }

 private:
  int fd_;
};

NodeEvent next(Rendezvous& rendezvous) {
  const double deadline = monotonic_seconds() + kPatienceSeconds;
  while (monotonic_seconds() < deadline) {
    if (const auto event = rendezvous.next_event()) return *event;
    pollfd news{rendezvous.event_fd(), POLLIN, 0};
    poll(&news, 1, 100);
  }
  return {NodeEventKind::kEnd, -1, 0, "no news"};
}

// The message of what `work` throws.
template <class Work>
std::string problem_of(const Work& work) {
  try {
    work();
  } catch (const LaunchError& error) {
    return error.what();
  }
  return "";
}

class RendezvousServing : public ::testing::Test {
 protected:
  RendezvousRequest request(int64_t num_nodes = 2) const {
    RendezvousRequest request;
    request.host = "127.0.0.1";
    request.port = port_;
    request.run_id = "job";
    request.build = "one";
    request.num_nodes = num_nodes;
    request.join_timeout_seconds = kPatienceSeconds;
    return request;
  }
  void serve(const RendezvousRequest& request,
             double hello_seconds = RendezvousServer::kHelloSeconds) {
    server_ = std::make_unique<RendezvousServer>(request, listener_, hello_seconds);
  }
  NodePlace meet(int64_t attempt = 0) {
    return server_->meet(attempt, [&] { return 4000 + attempt; });
  }
  std::future<std::string> meeting_problem() {
    return std::async(std::launch::async, [this] { return problem_of([this] { meet(); }); });
  }
  std::string client_problem(const RendezvousRequest& request) const {
    RendezvousClient client(request);
    return problem_of([&] { client.meet(0, {}); });
  }

  const int listener_ = listen_on("127.0.0.1", 0);
  const int64_t port_ = port_of_socket(listener_);
  std::unique_ptr<RendezvousServer> server_;
};

TEST_F(RendezvousServing, DropsWhoIsNoLauncherAndGoesOn) {
  serve(request(), 0.1);
  const RawNode silent(port_);
  const RawNode garbage(port_);
  garbage.say("GET / HTTP/1.1\r\n\r\n");
  const RawNode endless(port_);
  endless.say(std::string(200000, 'x'));
  const RawNode rude(port_);
  rude.say(to_line({.kind = MessageKind::kReady, .number = 0}));
  EXPECT_TRUE(silent.is_sent_away());
  EXPECT_TRUE(garbage.is_sent_away());
  EXPECT_TRUE(endless.is_sent_away());
  EXPECT_TRUE(rude.is_sent_away());
  const RawNode node(port_);
  node.join(request());
  EXPECT_EQ(meet().world_size, 2);
  EXPECT_FALSE(server_->next_event()) << "strangers are no event";
}

TEST_F(RendezvousServing, IsNotHeldUpByWhoWasSentAway) {
  serve(request());
  RendezvousClient client(request());
  std::thread other([&] { client.meet(0, {}); });
  meet();
  other.join();
  const RawNode late(port_);
  late.join(request());
  late.say(std::string(size_t{3} << 20, '\n'));
  server_->tell({NodeEventKind::kStop, 0, 15, ""});
  EXPECT_EQ(next(client).number, 15);
}

TEST_F(RendezvousServing, TellsAllWhichNodeVanished) {
  serve(request(3));
  RendezvousRequest numbered = request(3);
  numbered.node_rank = 1;
  RendezvousClient client(numbered);
  std::thread other([&] { client.meet(0, {}); });
  RawNode node(port_);
  node.join(request(3));
  meet();
  other.join();
  node.vanish();
  for (Rendezvous* seen : std::initializer_list<Rendezvous*>{server_.get(), &client}) {
    const NodeEvent event = next(*seen);
    EXPECT_EQ(event.kind, NodeEventKind::kLost);
    EXPECT_EQ(event.node, 2);
    EXPECT_THAT(event.text, AllOf(HasSubstr("node 2"), HasSubstr(host_name())));
  }
}

TEST_F(RendezvousServing, CountsASilentNodeAsLost) {
  RendezvousRequest hasty = request();
  hasty.keep_alive_seconds = 0.1;
  serve(hasty);
  const RawNode node(port_);
  node.join(hasty);
  meet();
  const NodeEvent event = next(*server_);
  EXPECT_EQ(event.kind, NodeEventKind::kLost);
  EXPECT_THAT(event.text, HasSubstr("silent for 300 ms"));
}

TEST_F(RendezvousServing, KeepsWhoOnlySaysThatItLives) {
  RendezvousRequest hasty = request();
  hasty.keep_alive_seconds = 0.1;
  serve(hasty);
  RendezvousClient client(hasty);
  std::thread other([&] { client.meet(0, {}); });
  meet();
  other.join();
  pollfd news[] = {{server_->event_fd(), POLLIN, 0}, {client.event_fd(), POLLIN, 0}};
  EXPECT_EQ(poll(news, 2, 600), 0) << "twice the time after which silence is a loss";
}

TEST_F(RendezvousServing, TakesNoLeaveAfterTheEndAsALoss) {
  serve(request());
  RawNode node(port_);
  node.join(request());
  meet();
  server_->tell({NodeEventKind::kEnd, 0, 0, ""});
  node.vanish();
  pollfd news{server_->event_fd(), POLLIN, 0};
  EXPECT_EQ(poll(&news, 1, 100), 0);
}

TEST_F(RendezvousServing, OnlyHearsTheWishToStopFromAnEarlierAttempt) {
  serve(request());
  const RawNode node(port_);
  node.join(request());
  meet(0);
  node.say(to_line({.kind = MessageKind::kReady, .number = 1}));
  meet(1);
  for (const NodeEventKind kind : {NodeEventKind::kFailed, NodeEventKind::kEnded,
                                   NodeEventKind::kStop, NodeEventKind::kKill}) {
    node.say(to_line({.kind = MessageKind::kEvent, .number = 0, .event = {kind, 1, 9, ""}}));
  }
  EXPECT_EQ(next(*server_).kind, NodeEventKind::kStop);
  EXPECT_EQ(next(*server_).kind, NodeEventKind::kKill);
}

TEST_F(RendezvousServing, EndsTheJobOnAllSidesIfANodeDoesNotFit) {
  serve(request(3));
  RendezvousRequest first = request(3);
  first.node_rank = 1;
  auto waiting = std::async(std::launch::async, [&] { return client_problem(first); });
  auto serving = meeting_problem();
  const std::string twice = client_problem(first);
  const std::string expected = "--node-rank 1 is given twice";
  EXPECT_THAT(twice, HasSubstr(expected));
  EXPECT_THAT(waiting.get(), HasSubstr(expected));
  EXPECT_THAT(serving.get(), HasSubstr(expected));
}

TEST_F(RendezvousServing, NamesBothBuilds) {
  serve(request());
  auto serving = meeting_problem();
  RendezvousRequest other = request();
  other.build = "two";
  const auto names_both = AllOf(HasSubstr("\"one\""), HasSubstr("\"two\""));
  EXPECT_THAT(client_problem(other), names_both);
  EXPECT_THAT(serving.get(), names_both);
}

TEST_F(RendezvousServing, NamesBothNumbersOfNodes) {
  serve(request());
  auto serving = meeting_problem();
  const auto names_both = AllOf(HasSubstr("--nnodes is 5"), HasSubstr("but 2"));
  EXPECT_THAT(client_problem(request(5)), names_both);
  EXPECT_THAT(serving.get(), names_both);
}

TEST_F(RendezvousServing, SendsAnotherJobAwayAndWaitsForItsOwn) {
  serve(request());
  auto serving = meeting_problem();
  RendezvousRequest stranger = request();
  stranger.run_id = "another";
  EXPECT_THAT(client_problem(stranger), AllOf(HasSubstr("\"another\""), HasSubstr("\"job\"")));
  EXPECT_EQ(client_problem(request()), "");
  EXPECT_EQ(serving.get(), "");
}

TEST_F(RendezvousServing, TellsAllWhoCameWhenTheTimeIsUp) {
  RendezvousRequest hasty = request(3);
  hasty.join_timeout_seconds = 1;
  serve(hasty);
  auto serving = meeting_problem();
  const auto tells =
      AllOf(HasSubstr("not all 3 nodes"), HasSubstr("there are 2"), HasSubstr(host_name()),
            HasSubstr("127.0.0.1"), HasSubstr("within 1.0 s"));
  EXPECT_THAT(client_problem(request(3)), tells);
  EXPECT_THAT(serving.get(), tells);
}

TEST_F(RendezvousServing, NamesWhoDoesNotComeToTheNextAttempt) {
  RendezvousRequest hasty = request();
  hasty.join_timeout_seconds = 1;
  serve(hasty);
  const RawNode node(port_);
  node.join(request());
  meet(0);
  EXPECT_THAT(
      problem_of([&] { meet(1); }),
      AllOf(HasSubstr("attempt 1"), HasSubstr("1 did not: node 1"), HasSubstr("127.0.0.1")));
}

TEST_F(RendezvousServing, LetsTellWhoIsAskedWhetherToGiveUp) {
  RendezvousRequest asked = request();
  asked.is_cancelled = [this] {
    server_->tell({NodeEventKind::kStop, 0, 15, ""});
    return true;
  };
  serve(asked);
  EXPECT_THAT(problem_of([&] { meet(); }), HasSubstr("given up"));
}

}  // namespace
}  // namespace assay::launch
