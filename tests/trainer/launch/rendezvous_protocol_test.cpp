#include "trainer/launch/rendezvous_protocol.h"

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/text.h"
#include "trainer/launch/line_connection.h"

namespace assay::launch {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Hello hello(int64_t node_rank = -1, int64_t num_local_ranks = 1) {
  Hello hello;
  hello.run_id = "job";
  hello.build = "0.1.0 (commit a)";
  hello.host = "a";
  hello.num_nodes = 3;
  hello.node_rank = node_rank;
  hello.num_local_ranks = num_local_ranks;
  return hello;
}

TEST(RendezvousProtocol, ReadsWhatItWrites) {
  Message event;
  event.kind = MessageKind::kEvent;
  event.number = 4;
  event.event = {NodeEventKind::kLost, 2, -3, "node \"2\"\n\xff"};
  const Message read = message_from_line(trimmed(to_line(event)));
  EXPECT_EQ(read.number, 4);
  EXPECT_EQ(read.event.kind, NodeEventKind::kLost);
  EXPECT_EQ(read.event.node, 2);
  EXPECT_EQ(read.event.number, -3);
  EXPECT_THAT(read.event.text, HasSubstr("node \"2\"\n"));

  Message place;
  place.kind = MessageKind::kPlace;
  place.place = {1, 3, 4, 9, "fd00::1", 29500};
  const NodePlace back = message_from_line(trimmed(to_line(place))).place;
  EXPECT_EQ(back.first_rank, 4);
  EXPECT_EQ(back.world_size, 9);
  EXPECT_EQ(back.master_addr, "fd00::1");

  Message first;
  first.kind = MessageKind::kHello;
  first.hello = hello(2, 8);
  EXPECT_EQ(message_from_line(trimmed(to_line(first))).hello.num_local_ranks, 8);
}

TEST(RendezvousProtocol, IsOneLineWhateverTheTextHolds) {
  for (const MessageKind kind : {MessageKind::kRefused, MessageKind::kBusy}) {
    const std::string line = to_line({.kind = kind, .text = "a\nb\r\x01"});
    EXPECT_EQ(line.find('\n'), line.size() - 1);
  }
}

TEST(RendezvousProtocol, CutsATextThatFitsNoLine) {
  Message event;
  event.kind = MessageKind::kEvent;
  event.event = {NodeEventKind::kFailed, 1, 7, std::string(LineConnection::kMaxLineBytes, '\x1b')};
  const std::string line = to_line(event);
  EXPECT_LE(line.size(), LineConnection::kMaxLineBytes);
  const NodeEvent read = message_from_line(trimmed(line)).event;
  EXPECT_EQ(read.number, 7);
  EXPECT_EQ(event.event.text.find(read.text), 0U);
  EXPECT_FALSE(read.text.empty());
}

TEST(RendezvousProtocol, RefusesNamesWithoutEnd) {
  Message first;
  first.kind = MessageKind::kHello;
  first.hello = hello();
  first.hello.run_id.assign(5000, 'x');
  EXPECT_THROW(message_from_line(trimmed(to_line(first))), LaunchError);
}

TEST(RendezvousProtocol, RefusesEverythingElse) {
  const std::vector<std::string> lines = {"",
                                          "null",
                                          "[]",
                                          "{}",
                                          "GET / HTTP/1.1",
                                          "{\"message\":\"shout\"}",
                                          "{\"message\":3}",
                                          R"({"message":"ready","attempt":-1})",
                                          R"({"message":"ready","attempt":1e9})",
                                          R"({"message":"ready","attempt":99999999999999999999})",
                                          R"({"message":"event","attempt":0})",
                                          R"({"message":"hello","protocol":1,"run_id":7})",
                                          std::string(5000, '['),
                                          R"({"message":"beat","message":"bye"})"};
  for (const std::string& line : lines) {
    EXPECT_THROW(message_from_line(line), LaunchError) << line;
  }
}

TEST(RendezvousProtocol, TakesMutatedLinesWithoutHarm) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(cat("seed ", seed));
  std::mt19937_64 random(seed);
  Message message;
  message.kind = MessageKind::kHello;
  message.hello = hello(1, 4);
  const std::string good = trimmed(to_line(message));
  int num_refused = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string line = good;
    for (uint64_t edits = 1 + random() % 3; edits > 0; --edits) {
      line[random() % line.size()] = static_cast<char>(random());
    }
    try {
      message_from_line(line);
    } catch (const LaunchError&) {
      ++num_refused;
    }
  }
  EXPECT_GT(num_refused, 0);
}

TEST(RendezvousProtocol, ReadsOnlyTheVersionOfAnother) {
  const Message other = message_from_line(R"({"message":"hello","protocol":7,"new":[]})");
  EXPECT_EQ(other.hello.protocol, 7);
}

std::string refusal(const Hello& other) {
  NodeTable table(hello());
  table.add(hello(1), "10.0.0.2");
  const auto refused = table.refusal(other, "10.0.0.3");
  return refused ? refused->text : "taken";
}

TEST(NodeTable, RefusesWhatDoesNotMatchNamingBothValues) {
  Hello other = hello();
  other.run_id = "another";
  EXPECT_THAT(refusal(other), AllOf(HasSubstr("\"another\""), HasSubstr("\"job\"")));
  other = hello();
  other.build = "0.2.0 (commit b)";
  EXPECT_THAT(refusal(other), AllOf(HasSubstr("0.2.0"), HasSubstr("0.1.0")));
  other = hello();
  other.num_nodes = 5;
  EXPECT_THAT(refusal(other), AllOf(HasSubstr("5"), HasSubstr("3")));
  other = hello();
  other.protocol = 2;
  EXPECT_THAT(refusal(other), AllOf(HasSubstr("version 2"), HasSubstr("version 1")));
  EXPECT_THAT(refusal(hello(1)),
              AllOf(HasSubstr("--node-rank 1"), HasSubstr("10.0.0.2"), HasSubstr("10.0.0.3")));
  EXPECT_THAT(refusal(hello(0)), AllOf(HasSubstr("--node-rank 0"), HasSubstr("serving")));
  EXPECT_THAT(refusal(hello(3)), AllOf(HasSubstr("is 3"), HasSubstr("below")));
  EXPECT_EQ(refusal(hello(2)), "taken");
  EXPECT_EQ(refusal(hello()), "taken");
}

TEST(NodeTable, CountsAnotherRunAsAStranger) {
  const NodeTable table(hello());
  Hello stranger = hello();
  stranger.run_id = "another";
  EXPECT_FALSE(table.refusal(stranger, "x")->is_same_job);
  Hello mistaken = hello();
  mistaken.num_nodes = 9;
  EXPECT_TRUE(table.refusal(mistaken, "x")->is_same_job);
}

TEST(NodeTable, GivesEachNodeItsRanks) {
  NodeTable table(hello(0, 2));
  const int64_t first_to_come = table.add(hello(2, 3), "b");
  EXPECT_FALSE(table.is_complete());
  const int64_t second_to_come = table.add(hello(-1, 4), "c");
  ASSERT_TRUE(table.is_complete());
  table.assign_ranks();
  EXPECT_EQ(table.own_place().first_rank, 0);
  EXPECT_EQ(table.place(second_to_come).group_rank, 1);
  EXPECT_EQ(table.place(second_to_come).first_rank, 2);
  EXPECT_EQ(table.place(first_to_come).group_rank, 2);
  EXPECT_EQ(table.place(first_to_come).first_rank, 6);
  EXPECT_EQ(table.place(first_to_come).world_size, 9);
}

TEST(NodeTable, ForgetsANodeThatLeavesBeforeTheStart) {
  NodeTable table(hello());
  const int64_t key = table.add(hello(1), "b");
  table.remove(key);
  EXPECT_FALSE(table.refusal(hello(1), "b"));
}

}  // namespace
}  // namespace assay::launch
