#include "trainer/launch/launch_options.h"

#include <algorithm>
#include <csignal>
#include <string_view>

#include "base/error.h"
#include "base/text.h"
#include "trainer/launch/address.h"
#include "trainer/launch/launch_option_table.h"
#include "trainer/launch/signals.h"

namespace assay::launch {
namespace {

constexpr int64_t kMostRanks = 4096;  // on one node
constexpr int64_t kMostNodes = 65536;
constexpr int64_t kEndpointPort = 29400;  // torchrun's for --rdzv-endpoint
constexpr int64_t kMasterPort = 29500;    // torchrun's for --master-port
constexpr std::string_view kDefaultSignals = "SIGTERM,SIGINT,SIGHUP,SIGQUIT,SIGUSR1,SIGUSR2";

// A value and where it was given: "--nnodes" or "PET_NNODES".
struct Given {
  std::string where;
  std::string text;
};

[[noreturn]] void refuse(const Given& given, const std::string& expected) {
  throw ConfigError(cat(given.where, " is ", quoted(given.text), ", must be ", expected,
                        ". Fix: see assay launch --help"));
}

int64_t whole(const Given& given, const std::string& text, int64_t least, int64_t most) {
  const auto parsed = parse_int64(trimmed(text));
  if (parsed && *parsed >= least && *parsed <= most) return *parsed;
  refuse(given, cat("a whole number from ", least, " to ", most));
}

double seconds(const Given& given, const std::string& text) {
  const auto parsed = parse_double(trimmed(text));
  if (parsed && *parsed >= 0.001 && *parsed <= 1e7) return *parsed;
  refuse(given, "a number of seconds from 0.001 to 10000000");
}

bool is_on(const Given& given) {
  if (given.text.empty() || given.text == "1" || given.text == "true") return true;
  if (given.text == "0" || given.text == "false") return false;
  refuse(given, "1 or 0");
}

std::string one_of(const Given& given, const std::vector<std::string>& choices) {
  if (std::find(choices.begin(), choices.end(), given.text) != choices.end()) return given.text;
  const auto near = nearest_spelling(given.text, choices);
  refuse(given, cat(join(choices, " or "), near ? cat(" (", *near, "?)") : ""));
}

std::string read_local_ranks(const Given& given) {
  if (given.text == "gpu" || given.text == "cpu" || given.text == "auto") return given.text;
  if (!parse_int64(given.text)) refuse(given, "a number from 1 on, gpu, cpu or auto");
  return cat(whole(given, given.text, 1, kMostRanks));
}

int64_t read_nodes(const Given& given) {
  const size_t colon = given.text.find(':');
  if (colon == std::string::npos) return whole(given, given.text, 1, kMostNodes);
  const int64_t least = whole(given, given.text.substr(0, colon), 1, kMostNodes);
  const int64_t most = whole(given, given.text.substr(colon + 1), 1, kMostNodes);
  if (least == most) return most;
  throw ConfigError(cat(given.where, " is ", quoted(given.text),
                        ", but a job here keeps its number of nodes. Fix: give one number, e.g. "
                        "--nnodes ",
                        most));
}

struct Endpoint {
  std::string host;
  int64_t port = 0;
};

// HOST, HOST:PORT, [ADDRESS]:PORT, or a bare IPv6 address.
Endpoint read_endpoint(const Given& given, int64_t default_port) {
  const std::string& text = given.text;
  const size_t bracket = text.rfind(']');
  const size_t colon = text.rfind(':');
  const bool is_bare_ipv6 = !text.starts_with('[') && std::count(text.begin(), text.end(), ':') > 1;
  Endpoint endpoint{text, default_port};
  const bool has_port = colon != std::string::npos && !is_bare_ipv6 &&
                        (bracket == std::string::npos || colon > bracket);
  if (has_port) {
    endpoint.host = text.substr(0, colon);
    endpoint.port = whole(given, text.substr(colon + 1), 0, 65535);
  }
  endpoint.host = without_brackets(endpoint.host);
  const bool is_odd =
      endpoint.host.empty() || endpoint.host.find_first_of("[] /\t\n") != std::string::npos;
  if (is_odd) refuse(given, "HOST or HOST:PORT, an IPv6 address as [::1]:29400");
  return endpoint;
}

void read_conf(const Given& given, LaunchOptions& options) {
  const std::vector<std::string> ignored = {"last_call_timeout", "close_timeout", "read_timeout",
                                            "store_type",        "is_host",       "heartbeat"};
  std::vector<std::string> known = {"join_timeout", "timeout", "keep_alive_interval",
                                    "keep_alive_max_attempt", "rank"};
  for (const std::string& pair : split(given.text, ',')) {
    if (trimmed(pair).empty()) continue;
    const size_t equals = pair.find('=');
    if (equals == std::string::npos) refuse(given, "key=value,...");
    const std::string key = trimmed(pair.substr(0, equals));
    const Given entry{cat(given.where, " ", key), trimmed(pair.substr(equals + 1))};
    if (key == "join_timeout" || key == "timeout") {
      options.join_timeout_seconds = seconds(entry, entry.text);
    } else if (key == "keep_alive_interval") {
      options.keep_alive_seconds = seconds(entry, entry.text);
    } else if (key == "keep_alive_max_attempt") {
      options.keep_alive_misses = whole(entry, entry.text, 1, 1000000);
    } else if (key == "rank") {
      options.node_rank = whole(entry, entry.text, 0, kMostNodes - 1);
    } else if (std::find(ignored.begin(), ignored.end(), key) == ignored.end()) {
      known.insert(known.end(), ignored.begin(), ignored.end());
      const auto near = nearest_spelling(key, known);
      throw ConfigError(cat("unknown key ", quoted(key), " in ", given.where,
                            near ? cat("; did you mean ", quoted(*near), "?")
                                 : cat(", expected one of ", join(known, ", "))));
    }
  }
}

StreamModes read_modes(const Given& given) {
  StreamModes modes;
  if (given.text.find(':') == std::string::npos) {
    modes.all = static_cast<int>(whole(given, given.text, 0, 3));
    return modes;
  }
  for (const std::string& pair : split(given.text, ',')) {
    const size_t colon = pair.find(':');
    if (colon == std::string::npos) refuse(given, "0 to 3, or rank:mode,rank:mode,...");
    modes.of_rank[whole(given, pair.substr(0, colon), 0, kMostRanks - 1)] =
        static_cast<int>(whole(given, pair.substr(colon + 1), 0, 3));
  }
  return modes;
}

std::vector<int> read_signals(const Given& given) {
  std::vector<int> numbers;
  for (const std::string& word : split(given.text, ',')) {
    const int number = signal_number_of(trimmed(word));
    const bool cannot = number == SIGKILL || number == SIGSTOP || number == SIGCHLD;
    if (number <= 0 || cannot) refuse(given, cat("names as in ", kDefaultSignals));
    numbers.push_back(number);
  }
  return numbers;
}

// A comma within a text is written twice, as for torchrun.
std::vector<std::string> read_filters(const Given& given) {
  std::vector<std::string> texts(1);
  for (size_t i = 0; i < given.text.size(); ++i) {
    const char letter = given.text[i];
    if (letter != ',') {
      texts.back() += letter;
    } else if (i + 1 < given.text.size() && given.text[i + 1] == ',') {
      texts.back() += letter;
      ++i;
    } else {
      texts.emplace_back();
    }
  }
  std::erase(texts, "");
  return texts;
}

// A run's name becomes part of a folder's name.
std::string read_run_id(const Given& given) {
  const bool is_odd = given.text.empty() || given.text.size() > 200 ||
                      given.text.find('/') != std::string::npos ||
                      escaped(given.text) != given.text;
  if (is_odd) refuse(given, "a name of 1 to 200 letters without / and control characters");
  return given.text;
}

std::set<int64_t> read_ranks(const Given& given) {
  std::set<int64_t> ranks;
  for (const std::string& rank : split(given.text, ',')) {
    ranks.insert(whole(given, rank, 0, kMostRanks - 1));
  }
  return ranks;
}

struct Meeting {
  std::optional<Given> endpoint;
  int64_t master_port = 0;
};

void apply_meeting(const std::string& name, const Given& given, LaunchOptions& options,
                   Meeting& meeting) {
  if (name == "rdzv-endpoint" && !given.text.empty()) meeting.endpoint = given;
  if (name == "rdzv-id") options.run_id = read_run_id(given);
  if (name == "rdzv-backend") one_of(given, {"static", "c10d"});
  if (name == "rdzv-conf") read_conf(given, options);
  if (name == "master-addr") options.master_addr = read_endpoint(given, 0).host;
  if (name == "master-port") meeting.master_port = whole(given, given.text, 0, 65535);
  if (name == "local-addr") options.local_addr = without_brackets(given.text);
  if (name == "standalone") options.is_standalone = is_on(given);
}

void apply(const std::string& name, const Given& given, LaunchOptions& options, Meeting& meeting) {
  apply_meeting(name, given, options, meeting);
  if (name == "nproc-per-node") options.num_local_ranks = read_local_ranks(given);
  if (name == "nnodes") options.num_nodes = read_nodes(given);
  if (name == "node-rank") options.node_rank = whole(given, given.text, 0, kMostNodes - 1);
  if (name == "role") options.role = given.text;
  if (name == "numa-binding") options.numa_binding = one_of(given, {"node", "none"});
  if (name == "virtual-local-rank") options.is_virtual_local_rank = is_on(given);
  if (name == "max-restarts") options.max_restarts = whole(given, given.text, 0, 1000000);
  if (name == "monitor-interval") options.monitor_interval_seconds = seconds(given, given.text);
  if (name == "grace-period") options.grace_seconds = seconds(given, given.text);
  if (name == "signals-to-handle") {
    options.signals = read_signals(given);
    options.signals_text = given.text;
  }
  if (name == "log-dir") options.log_dir = given.text;
  if (name == "redirects") options.redirects = read_modes(given);
  if (name == "tee") options.tee = read_modes(given);
  if (name == "local-ranks-filter" && !given.text.empty()) options.shown_ranks = read_ranks(given);
  if (name == "duplicate-stdout-filters") options.stdout_filters = read_filters(given);
  if (name == "duplicate-stderr-filters") options.stderr_filters = read_filters(given);
  if (name == "help") options.is_help = true;
}

// What only shows when all is known.
void settle(const Meeting& meeting, LaunchOptions& options) {
  if (options.is_standalone) {
    if (options.num_nodes != 1) {
      throw ConfigError(cat("--standalone is one node, but --nnodes is ", options.num_nodes,
                            ". Fix: leave one of them out"));
    }
    options.node_rank.reset();
  }
  if (options.node_rank && *options.node_rank >= options.num_nodes) {
    throw ConfigError(cat("--node-rank is ", *options.node_rank, ", must be below --nnodes, which ",
                          "is ", options.num_nodes, ". Fix: number the nodes from 0"));
  }
  options.store_port = meeting.master_port;
  if (options.num_nodes > 1) {
    if (!meeting.endpoint && options.master_addr.empty()) {
      throw ConfigError(cat("--nnodes is ", options.num_nodes, ", but nothing says where the ",
                            "nodes meet. Fix: give --rdzv-endpoint HOST:PORT, an address of node "
                            "0, on all nodes"));
    }
    Endpoint endpoint{options.master_addr,
                      meeting.master_port > 0 ? meeting.master_port : kMasterPort};
    if (meeting.endpoint) {
      endpoint = read_endpoint(*meeting.endpoint, kEndpointPort);
      if (endpoint.port == 0) refuse(*meeting.endpoint, "HOST:PORT with a port above 0");
    } else {
      options.store_port = 0;  // that port is where the nodes meet
    }
    options.endpoint_host = endpoint.host;
    options.endpoint_port = endpoint.port;
  }
  const bool has_filters = !options.stdout_filters.empty() || !options.stderr_filters.empty();
  if (options.log_dir.empty() && (options.redirects.is_any() || has_filters)) {
    throw ConfigError(
        cat(has_filters ? "--duplicate-std*-filters" : "--redirects",
            " writes files, but there is no folder for them. Fix: add --log-dir DIR"));
  }
}

// Reads the options up to the program; returns the number of words they took.
size_t read_words(std::span<const std::string> words, LaunchOptions& options, Meeting& meeting) {
  size_t i = 0;
  for (; i < words.size() && words[i].size() > 1 && words[i][0] == '-' && words[i] != "--"; ++i) {
    const std::string& word = words[i];
    const bool is_long = word.starts_with("--");
    const size_t equals = is_long ? word.find('=') : std::string::npos;
    // "-r3" and "-r=3" carry their value.
    const LaunchOptionSpec& spec =
        launch_option(is_long ? word.substr(0, equals) : word.substr(0, 2));
    Given given{cat("--", spec.name), ""};
    if (equals != std::string::npos) {
      given.text = word.substr(equals + 1);
    } else if (!is_long && word.size() > 2) {
      given.text = word.substr(word[2] == '=' ? 3 : 2);
    } else if (!spec.value_name.empty()) {
      if (i + 1 >= words.size()) {
        throw ConfigError(cat(given.where, " needs a value, expected ", spec.value_name,
                              ". Fix: see assay launch --help"));
      }
      given.text = words[++i];
    }
    apply(std::string(spec.name), given, options, meeting);
  }
  return i;
}

}  // namespace

int StreamModes::of(int64_t local_rank) const {
  if (of_rank.empty()) return all;
  const auto found = of_rank.find(local_rank);
  return found == of_rank.end() ? 0 : found->second;
}

LaunchOptions parse_launch_options(std::span<const std::string> words,
                                   const VariableLookup& lookup) {
  LaunchOptions options;
  Meeting meeting;
  options.signals_text = kDefaultSignals;
  options.signals = read_signals({"--signals-to-handle", options.signals_text});
  for (const LaunchOptionSpec& spec : launch_option_specs()) {
    const std::string variable = variable_of(spec);
    const char* value = spec.name == "help" ? nullptr : lookup(variable.c_str());
    if (value == nullptr || *value == '\0') continue;
    apply(std::string(spec.name), {variable, value}, options, meeting);
  }
  size_t i = read_words(words, options, meeting);
  if (options.is_help) return options;
  if (i < words.size() && words[i] == "--") ++i;
  if (i >= words.size() || words[i] != "train") {
    throw ConfigError(cat("assay launch starts the program train, got ",
                          i < words.size() ? quoted(words[i]) : std::string("nothing"),
                          ". Fix: assay launch --nproc-per-node 2 -- train CONFIG.json"));
  }
  options.train_words.assign(words.begin() + static_cast<std::ptrdiff_t>(i) + 1, words.end());
  settle(meeting, options);
  return options;
}

}  // namespace assay::launch
