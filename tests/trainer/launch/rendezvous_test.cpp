// A serving and connecting nodes within one process, over loopback.
#include "trainer/launch/rendezvous.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <thread>

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
#include "trainer/launch/rendezvous_server.h"

namespace assay::launch {
namespace {

using ::testing::HasSubstr;

RendezvousRequest request_at(int64_t port, int64_t num_nodes = 2) {
  RendezvousRequest request;
  request.host = "127.0.0.1";
  request.port = port;
  request.build = "a";
  request.num_nodes = num_nodes;
  request.join_timeout_seconds = 10;
  return request;
}

// Waits for news, which come from the other node's thread.
NodeEvent next(Rendezvous& rendezvous) {
  const double deadline = monotonic_seconds() + 10;
  while (monotonic_seconds() < deadline) {
    if (const auto event = rendezvous.next_event()) return *event;
    pollfd news{rendezvous.event_fd(), POLLIN, 0};
    poll(&news, 1, 100);
  }
  return {NodeEventKind::kEnd, -1, 0, "no news"};
}

class RendezvousPair : public ::testing::Test {
 protected:
  void SetUp() override {
    const int listener = listen_on("127.0.0.1", 0);
    port_ = port_of_socket(listener);
    server_ = std::make_unique<RendezvousServer>(request_at(port_), listener);
    client_ = std::make_unique<RendezvousClient>(request_at(port_));
  }
  void meet(int64_t attempt) {
    std::thread other([&] { client_place_ = client_->meet(attempt, {}); });
    server_place_ = server_->meet(attempt, [&] { return 4000 + attempt; });
    other.join();
  }
  int64_t port_ = 0;
  std::unique_ptr<RendezvousServer> server_;
  std::unique_ptr<RendezvousClient> client_;
  NodePlace server_place_;
  NodePlace client_place_;
};

TEST_F(RendezvousPair, AgreesOnPlacesAndTheStore) {
  meet(0);
  EXPECT_EQ(server_place_.group_rank, 0);
  EXPECT_EQ(client_place_.group_rank, 1);
  EXPECT_EQ(client_place_.first_rank, 1);
  EXPECT_EQ(client_place_.master_addr, "127.0.0.1");
  EXPECT_EQ(client_place_.master_port, 4000);
}

TEST_F(RendezvousPair, MeetsAgainForEachAttempt) {
  for (int64_t attempt = 0; attempt < 3; ++attempt) {
    meet(attempt);
    EXPECT_EQ(client_place_.master_port, 4000 + attempt);
    EXPECT_EQ(server_place_.master_port, 4000 + attempt);
  }
}

TEST_F(RendezvousPair, CarriesEventsBothWays) {
  meet(0);
  client_->tell({NodeEventKind::kFailed, 99, 7, "text"});
  const NodeEvent at_server = next(*server_);
  EXPECT_EQ(at_server.node, 1) << "the server knows who speaks";
  EXPECT_EQ(at_server.text, "text");
  server_->tell({NodeEventKind::kStop, 0, 15, ""});
  EXPECT_EQ(next(*client_).number, 15);
}

TEST_F(RendezvousPair, ForgetsWhatAnEarlierAttemptSaid) {
  meet(0);
  client_->tell({NodeEventKind::kFailed, 1, 0, "first"});
  EXPECT_EQ(next(*server_).text, "first");
  meet(1);
  client_->tell({NodeEventKind::kFailed, 1, 0, "second"});
  EXPECT_EQ(next(*server_).text, "second");
}

TEST_F(RendezvousPair, SeesThatANodeIsGone) {
  meet(0);
  client_.reset();
  const NodeEvent event = next(*server_);
  EXPECT_EQ(event.kind, NodeEventKind::kLost);
  EXPECT_EQ(event.node, 1);
  EXPECT_THROW(server_->meet(1, [] { return int64_t{1}; }), LaunchError);
}

TEST_F(RendezvousPair, SeesThatTheServingNodeHasGivenUp) {
  meet(0);
  server_.reset();
  const NodeEvent event = next(*client_);
  EXPECT_EQ(event.kind, NodeEventKind::kLost);
  EXPECT_EQ(event.node, 0);
}

TEST_F(RendezvousPair, CountsTheEndOfTheJobAsNoLoss) {
  meet(0);
  server_->tell({NodeEventKind::kEnd, 0, 3, "report"});
  server_.reset();
  const NodeEvent event = next(*client_);
  EXPECT_EQ(event.kind, NodeEventKind::kEnd);
  EXPECT_EQ(event.number, 3);
  EXPECT_FALSE(client_->next_event());
}

TEST_F(RendezvousPair, SendsALateComerAwayAndKeepsRunning) {
  meet(0);
  RendezvousRequest late = request_at(port_);
  late.join_timeout_seconds = 0.5;
  RendezvousClient other(late);
  try {
    other.meet(0, {});
    FAIL() << "taken in";
  } catch (const LaunchError& error) {
    EXPECT_THAT(error.what(), HasSubstr("already runs"));
  }
  client_->tell({NodeEventKind::kStop, 1, 2, ""});
  EXPECT_EQ(next(*server_).number, 2);
}

TEST_F(RendezvousPair, GivesUpWhenAsked) {
  RendezvousRequest request = request_at(port_);
  request.is_cancelled = [] { return true; };
  RendezvousClient waiting(request);
  EXPECT_THROW(waiting.meet(0, {}), LaunchError);
}

TEST(Rendezvous, IsServedByTheNodeThatCanBind) {
  const int probe = listen_on("127.0.0.1", 0);
  const int64_t port = port_of_socket(probe);
  close(probe);
  const auto first = open_rendezvous(request_at(port));
  const auto second = open_rendezvous(request_at(port));
  EXPECT_TRUE(first->is_server());
  EXPECT_FALSE(second->is_server());
}

TEST(Rendezvous, SaysWhyThePortCannotBeHad) {
  const int holder = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(bind(holder, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  const int64_t port = port_of_socket(holder);  // taken, but nobody answers there
  try {
    open_rendezvous(request_at(port));
    ADD_FAILURE() << "opened";
  } catch (const LaunchError& error) {
    EXPECT_THAT(error.what(), HasSubstr(endpoint_text("127.0.0.1", port)));
  }
  close(holder);
}

TEST(Rendezvous, MeetsOverIpv6) {
  int listener = -1;
  try {
    listener = listen_on("::1", 0);
  } catch (const LaunchError& error) {
    GTEST_SKIP() << error.what();
  }
  RendezvousRequest request = request_at(port_of_socket(listener));
  request.host = "::1";
  RendezvousServer server(request, listener);
  RendezvousClient client(request);
  NodePlace place;
  std::thread other([&] { place = client.meet(0, {}); });
  server.meet(0, [] { return int64_t{4000}; });
  other.join();
  EXPECT_EQ(place.master_addr, "::1");
  EXPECT_EQ(place.group_rank, 1);
}

// Of this host, other than loopback; empty if it has none.
std::string outer_address() {
  for (const std::string& name : split(interface_names(), ',')) {
    const std::string address = address_of_interface(trimmed(name));
    if (!address.empty() && !is_loopback(address) && !address.starts_with("fe80")) return address;
  }
  return "";
}

TEST(Rendezvous, LeadsNobodyToLoopbackIfAnyNodeIsElsewhere) {
  const std::string outer = outer_address();
  if (outer.empty()) GTEST_SKIP() << "this host has loopback only";
  const int listener = listen_on("", 0);
  RendezvousRequest inside = request_at(port_of_socket(listener), 3);
  RendezvousRequest outside = inside;
  outside.host = outer;
  RendezvousServer server(inside, listener);
  RendezvousClient near(inside);
  RendezvousClient far(outside);
  NodePlace near_place;
  NodePlace far_place;
  std::thread first([&] { near_place = near.meet(0, {}); });
  std::thread second([&] { far_place = far.meet(0, {}); });
  const NodePlace own = server.meet(0, [] { return int64_t{4000}; });
  first.join();
  second.join();
  EXPECT_EQ(far_place.master_addr, outer);
  EXPECT_EQ(near_place.master_addr, outer);
  EXPECT_EQ(own.master_addr, outer);
}

TEST(Rendezvous, RanksThreeNodesAndCarriesNewsBetweenAll) {
  const int listener = listen_on("127.0.0.1", 0);
  RendezvousRequest request = request_at(port_of_socket(listener), 3);
  request.num_local_ranks = 2;
  RendezvousServer server(request, listener);
  request.num_local_ranks = 4;
  RendezvousClient unnumbered(request);
  request.num_local_ranks = 3;
  request.node_rank = 1;
  RendezvousClient numbered(request);
  NodePlace last;
  NodePlace middle;
  std::thread first([&] { last = unnumbered.meet(0, {}); });
  std::thread second([&] { middle = numbered.meet(0, {}); });
  const NodePlace own = server.meet(0, [] { return int64_t{4000}; });
  first.join();
  second.join();
  EXPECT_EQ(own.first_rank, 0);
  EXPECT_EQ(middle.group_rank, 1);
  EXPECT_EQ(middle.first_rank, 2);
  EXPECT_EQ(last.group_rank, 2);
  EXPECT_EQ(last.first_rank, 5);
  EXPECT_EQ(last.world_size, 9);
  unnumbered.tell({NodeEventKind::kFailed, 0, 0, "report"});
  EXPECT_EQ(next(server).text, "report");
  const NodeEvent event = next(numbered);
  EXPECT_EQ(event.text, "report");
  EXPECT_EQ(event.node, 2);
}

// A job that ends at the endpoint just as this one comes must not hide what happens later.
TEST(Rendezvous, SeesALossAfterAnEarlierGoodbye) {
  const int listener = listen_on("127.0.0.1", 0);
  RendezvousClient client(request_at(port_of_socket(listener)));
  Message place;
  place.kind = MessageKind::kPlace;
  place.place = {1, 2, 1, 2, "127.0.0.1", 4000};
  std::thread serving([&] {
    for (const std::string& line : {to_line({.kind = MessageKind::kBye}), to_line(place)}) {
      const int fd = accept(listener, nullptr, nullptr);
      EXPECT_GT(send(fd, line.data(), line.size(), MSG_NOSIGNAL), 0);
      shutdown(fd, SHUT_WR);
      char bytes[4096];
      while (recv(fd, bytes, sizeof(bytes), 0) > 0) continue;
      close(fd);
    }
  });
  EXPECT_EQ(client.meet(0, {}).group_rank, 1);
  EXPECT_EQ(next(client).kind, NodeEventKind::kLost);
  serving.join();
  close(listener);
}

TEST(Rendezvous, TellsAStrangerFromALauncher) {
  const int listener = listen_on("127.0.0.1", 0);
  RendezvousRequest request = request_at(port_of_socket(listener));
  request.join_timeout_seconds = 0.5;
  RendezvousClient client(request);
  std::thread stranger([&] {
    const int fd = accept(listener, nullptr, nullptr);
    constexpr std::string_view kBanner = "220 mail.example ESMTP\r\n";
    EXPECT_GT(write(fd, kBanner.data(), kBanner.size()), 0);
    poll(nullptr, 0, 50);
    close(fd);
    close(listener);
  });
  try {
    client.meet(0, {});
    ADD_FAILURE() << "taken in";
  } catch (const LaunchError& error) {
    EXPECT_THAT(error.what(), HasSubstr("within 500 ms"));
  }
  stranger.join();
}

TEST(Endpoint, KnowsThisHost) {
  EXPECT_TRUE(is_own_host("127.0.0.1"));
  EXPECT_TRUE(is_own_host("localhost"));
  EXPECT_FALSE(is_own_host("192.0.2.1"));  // RFC 5737: for documentation
  EXPECT_FALSE(is_own_host("no-such-host.invalid"));
}

TEST(Endpoint, TellsAddressesFromNames) {
  for (const char* text : {"127.0.0.1", "::1", "fd00::2"}) EXPECT_TRUE(is_numeric_address(text));
  for (const char* text : {"localhost", "host", "1.2.3.4.5"}) {
    EXPECT_FALSE(is_numeric_address(text)) << text;
  }
}

}  // namespace
}  // namespace assay::launch
