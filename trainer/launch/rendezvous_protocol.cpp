#include "trainer/launch/rendezvous_protocol.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "trainer/launch/address.h"
#include "trainer/launch/line_connection.h"

namespace assay::launch {
namespace {

using nlohmann::json;

// Part of the protocol; in the order of MessageKind and NodeEventKind.
constexpr std::array<std::string_view, 8> kMessageNames = {"hello", "ready", "place", "refused",
                                                           "busy",  "beat",  "event", "bye"};
constexpr std::array<std::string_view, 7> kEventNames = {"failed", "ended",   "stop", "kill",
                                                         "lost",   "restart", "end"};
constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
constexpr size_t kMaxNameBytes = 4096;  // of what a hello names: it comes back in messages

template <size_t Count>
size_t index_of(const std::array<std::string_view, Count>& names, const std::string& name,
                const char* key) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) return static_cast<size_t>(found - names.begin());
  throw LaunchError(cat("a launcher's line has ", quoted(key), " ", quoted(name), ", expected one ",
                        "of ", join(std::vector<std::string>(names.begin(), names.end()), ", ")));
}

const json& member(const json& object, const char* key) {
  if (object.is_object()) {
    const auto found = object.find(key);
    if (found != object.end()) return *found;
  }
  throw LaunchError(cat("a launcher's line lacks ", quoted(key)));
}

int64_t number(const json& object, const char* key, int64_t least, int64_t most = kMost) {
  const json& value = member(object, key);
  if (value.is_number_integer()) {
    const auto number = value.get<int64_t>();
    const bool is_huge = value.is_number_unsigned() && number < 0;
    if (!is_huge && number >= least && number <= most) return number;
  }
  throw LaunchError(cat("a launcher's line has ", quoted(key), " ", value.dump().substr(0, 40),
                        ", expected a whole number from ", least, " to ", most));
}

std::string text(const json& object, const char* key) {
  const json& value = member(object, key);
  if (value.is_string()) return value.get<std::string>();
  throw LaunchError(cat("a launcher's line has ", quoted(key), " of type ", value.type_name(),
                        ", expected text"));
}

std::string name(const json& object, const char* key) {
  std::string name = text(object, key);
  if (name.size() <= kMaxNameBytes) return name;
  throw LaunchError(cat("a launcher's line has ", quoted(key), " of ", name.size(),
                        " bytes, expected at most ", kMaxNameBytes));
}

json hello_json(const Hello& hello) {
  return {{"protocol", hello.protocol},
          {"run_id", hello.run_id},
          {"build", hello.build},
          {"host", hello.host},
          {"nnodes", hello.num_nodes},
          {"node_rank", hello.node_rank},
          {"nproc_per_node", hello.num_local_ranks}};
}

// Of another version only the number is read, so that the refusal can name both.
Hello hello_from(const json& object) {
  Hello hello;
  hello.protocol = number(object, "protocol", 0);
  if (hello.protocol != kProtocolVersion) return hello;
  hello.run_id = name(object, "run_id");
  hello.build = name(object, "build");
  hello.host = name(object, "host");
  hello.num_nodes = number(object, "nnodes", 1);
  hello.node_rank = number(object, "node_rank", -1);
  hello.num_local_ranks = number(object, "nproc_per_node", 1);
  return hello;
}

json place_json(const NodePlace& place) {
  return {{"group_rank", place.group_rank},   {"nnodes", place.num_nodes},
          {"first_rank", place.first_rank},   {"world_size", place.world_size},
          {"master_addr", place.master_addr}, {"master_port", place.master_port}};
}

NodePlace place_from(const json& object) {
  NodePlace place;
  place.num_nodes = number(object, "nnodes", 1);
  place.group_rank = number(object, "group_rank", 0, place.num_nodes - 1);
  place.world_size = number(object, "world_size", 1);
  place.first_rank = number(object, "first_rank", 0, place.world_size - 1);
  place.master_addr = text(object, "master_addr");
  place.master_port = number(object, "master_port", 1, 65535);
  return place;
}

json event_json(const NodeEvent& event) {
  return {{"what", kEventNames[static_cast<size_t>(event.kind)]},
          {"node", event.node},
          {"number", event.number},
          {"text", event.text}};
}

NodeEvent event_from(const json& object) {
  NodeEvent event;
  event.kind = static_cast<NodeEventKind>(index_of(kEventNames, text(object, "what"), "what"));
  event.node = number(object, "node", 0);
  event.number = number(object, "number", std::numeric_limits<int64_t>::min(),
                        std::numeric_limits<int64_t>::max());
  event.text = text(object, "text");
  return event;
}

Message message_from(const json& object) {
  Message message;
  message.kind =
      static_cast<MessageKind>(index_of(kMessageNames, text(object, "message"), "message"));
  switch (message.kind) {
    case MessageKind::kHello:
      message.hello = hello_from(object);
      break;
    case MessageKind::kPlace:
      message.number = number(object, "attempt", 0);
      message.place = place_from(member(object, "place"));
      break;
    case MessageKind::kReady:
      message.number = number(object, "attempt", 0);
      break;
    case MessageKind::kEvent:
      message.number = number(object, "attempt", 0);
      message.event = event_from(member(object, "event"));
      break;
    case MessageKind::kRefused:
    case MessageKind::kBusy:
      message.text = text(object, "text");
      break;
    case MessageKind::kBeat:
    case MessageKind::kBye:
      break;
  }
  return message;
}

std::string whole_line(const Message& message) {
  json object = message.kind == MessageKind::kHello ? hello_json(message.hello) : json::object();
  object["message"] = kMessageNames[static_cast<size_t>(message.kind)];
  if (message.kind == MessageKind::kReady || message.kind == MessageKind::kPlace ||
      message.kind == MessageKind::kEvent) {
    object["attempt"] = message.number;
  }
  if (message.kind == MessageKind::kPlace) object["place"] = place_json(message.place);
  if (message.kind == MessageKind::kEvent) object["event"] = event_json(message.event);
  if (message.kind == MessageKind::kRefused || message.kind == MessageKind::kBusy) {
    object["text"] = message.text;
  }
  return cat(object.dump(-1, ' ', true, json::error_handler_t::replace), "\n");
}

}  // namespace

Hello hello_of(const RendezvousRequest& request) {
  Hello hello;
  hello.run_id = request.run_id;
  hello.build = request.build;
  hello.host = host_name();
  hello.num_nodes = request.num_nodes;
  hello.node_rank = request.node_rank.value_or(-1);
  hello.num_local_ranks = request.num_local_ranks;
  return hello;
}

std::string to_line(const Message& message) {
  std::string line = whole_line(message);
  Message shorter = message;
  std::string& text = message.kind == MessageKind::kEvent ? shorter.event.text : shorter.text;
  while (line.size() > LineConnection::kMaxLineBytes && !text.empty()) {
    text.resize(text.size() / 2);
    line = whole_line(shorter);
  }
  return line;
}

bool outlives_attempt(NodeEventKind kind) {
  return kind == NodeEventKind::kStop || kind == NodeEventKind::kKill;
}

Message message_from_line(const std::string& line) {
  json object;
  try {
    object = parse_json(line, "a launcher's line", {.allow_comments = false, .max_depth = 4});
  } catch (const ConfigError& error) {
    throw LaunchError(error.what());  // not this user's configuration, but another's bytes
  }
  return message_from(object);
}

NodeTable::NodeTable(const Hello& own) : own_(own) {
  entries_.push_back({.key = 0, .hello = own, .address = "", .group_rank = 0});
}

std::optional<NodeTable::Refusal> NodeTable::refusal(const Hello& hello,
                                                     const std::string& address) const {
  const std::string who = cat("host ", escaped(hello.host), " (", address, ")");
  if (hello.protocol != kProtocolVersion) {
    return Refusal{cat("the launcher at ", address, " speaks version ", hello.protocol,
                       " of the rendezvous, the serving one on host ", own_.host, " version ",
                       kProtocolVersion, ". Fix: run the same assay on all nodes"),
                   true};
  }
  if (hello.run_id != own_.run_id) {
    return Refusal{
        cat("--rdzv-id is ", quoted(hello.run_id), " on ", who, " but ", quoted(own_.run_id),
            " on the serving host ", own_.host,
            ". Fix: give the same --rdzv-id on all nodes, and each job an endpoint of its own"),
        false};
  }
  if (hello.build != own_.build) {
    return Refusal{
        cat("assay is ", quoted(hello.build), " on ", who, " but ", quoted(own_.build),
            " on the serving host ", own_.host, ". Fix: run the same build on all nodes"),
        true};
  }
  if (hello.num_nodes != own_.num_nodes) {
    return Refusal{cat("--nnodes is ", hello.num_nodes, " on ", who, " but ", own_.num_nodes,
                       " on the serving host ", own_.host, ". Fix: give the same on all nodes"),
                   true};
  }
  if (hello.node_rank >= own_.num_nodes) {
    return Refusal{cat("--node-rank is ", hello.node_rank, " on ", who, ", must be below --nnodes ",
                       own_.num_nodes),
                   true};
  }
  for (const Entry& other : entries_) {
    const int64_t taken = other.key == 0 ? 0 : other.hello.node_rank;
    if (hello.node_rank < 0 || hello.node_rank != taken) continue;
    return Refusal{
        cat("--node-rank ", hello.node_rank, " is given twice: on host ", escaped(other.hello.host),
            other.address.empty() ? " (the serving one)" : cat(" (", other.address, ")"),
            " and on ", who, ". Fix: give each node its own, or none of them one"),
        true};
  }
  return std::nullopt;
}

int64_t NodeTable::add(const Hello& hello, const std::string& address) {
  entries_.push_back({.key = next_key_, .hello = hello, .address = address, .group_rank = -1});
  return next_key_++;
}

void NodeTable::remove(int64_t key) {
  std::erase_if(entries_, [&](const Entry& entry) { return entry.key == key; });
}

void NodeTable::assign_ranks() {
  std::vector<bool> is_taken(entries_.size(), false);
  is_taken[0] = true;
  for (Entry& entry : entries_) {
    if (entry.key == 0 || entry.hello.node_rank < 0) continue;
    entry.group_rank = entry.hello.node_rank;
    is_taken[static_cast<size_t>(entry.group_rank)] = true;
  }
  for (Entry& entry : entries_) {
    if (entry.group_rank >= 0) continue;
    const auto free = std::find(is_taken.begin(), is_taken.end(), false);
    entry.group_rank = free - is_taken.begin();
    *free = true;
  }
  std::sort(entries_.begin(), entries_.end(),
            [](const Entry& a, const Entry& b) { return a.group_rank < b.group_rank; });
}

NodePlace NodeTable::place(int64_t key) const {
  NodePlace place;
  place.num_nodes = own_.num_nodes;
  place.world_size = 0;
  for (const Entry& entry : entries_) {
    if (entry.key == key) {
      place.group_rank = entry.group_rank;
      place.first_rank = place.world_size;
    }
    place.world_size += entry.hello.num_local_ranks;
  }
  return place;
}

const NodeTable::Entry& NodeTable::entry(int64_t key) const {
  for (const Entry& found : entries_) {
    if (found.key == key) return found;
  }
  throw InternalError(cat("node key ", key, " is not in the table"));
}

std::string NodeTable::name(int64_t key) const {
  const Entry& found = entry(key);
  const std::string node =
      found.group_rank >= 0 ? cat("node ", found.group_rank, " ") : std::string("a node ");
  return cat(node, "(host ", escaped(found.hello.host),
             found.address.empty() ? "" : cat(", ", found.address), ")");
}

std::string NodeTable::gathered_text() const {
  std::vector<std::string> names;
  for (const Entry& found : entries_) {
    const std::string rank =
        found.hello.node_rank >= 0 ? cat("node rank ", found.hello.node_rank, ", ") : "";
    names.push_back(cat(escaped(found.hello.host), " (", rank,
                        found.address.empty() ? "serving" : found.address, ")"));
  }
  return join(names, ", ");
}

}  // namespace assay::launch
