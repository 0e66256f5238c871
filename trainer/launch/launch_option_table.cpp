#include "trainer/launch/launch_option_table.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/text.h"

namespace assay::launch {
namespace {

constexpr std::string_view kRanks = "Ranks and nodes";
constexpr std::string_view kMeeting = "How the nodes meet";
constexpr std::string_view kLife = "Supervision";
constexpr std::string_view kOutput = "Output of the ranks";

constexpr auto kSpecs = std::to_array<LaunchOptionSpec>({
    {"nproc-per-node", '\0', "N", kRanks,
     "Ranks on this node: a number, gpu, cpu, or auto (GPUs if there are any, else CPUs)", "1"},
    {"nnodes", '\0', "N", kRanks, "Nodes of the job; N:N is the same", "1"},
    {"node-rank", '\0', "N", kRanks, "Number of this node, from 0", "by order of arrival"},
    {"role", '\0', "NAME", kRanks, "Name of the ranks in prefixes and in ROLE_NAME", "default"},
    {"numa-binding", '\0', "MODE", kRanks,
     "Bind each rank to the CPUs of its GPU's NUMA node: node or none",
     "node with several NUMA nodes and ranks, else none"},
    {"virtual-local-rank", '\0', "", kRanks,
     "Show each rank one GPU only, with LOCAL_RANK 0 for all", ""},
    {"standalone", '\0', "", kMeeting,
     "One node with a name of its own for the job; other meeting options are not used", ""},
    {"rdzv-endpoint", '\0', "HOST[:PORT]", kMeeting,
     "Where the nodes meet: an address of node 0, port 29400 if none is given", "none"},
    {"rdzv-id", '\0', "NAME", kMeeting, "Name of the job, the same on all nodes", "none"},
    {"rdzv-backend", '\0', "NAME", kMeeting,
     "static or c10d: both mean this program's own rendezvous", "static"},
    {"rdzv-conf", '\0', "K=V,...", kMeeting,
     "join_timeout, keep_alive_interval (seconds), keep_alive_max_attempt",
     "join_timeout=600,keep_alive_interval=5,keep_alive_max_attempt=3"},
    {"master-addr", '\0', "HOST", kMeeting, "Address of node 0; one node uses loopback only",
     "127.0.0.1"},
    {"master-port", '\0', "PORT", kMeeting,
     "Port of the ranks' store; of the meeting too where there is no --rdzv-endpoint",
     "a free one; 29500 for the meeting"},
    {"local-addr", '\0', "ADDR", kMeeting, "This host's address towards the other nodes",
     "as they reach it"},
    {"max-restarts", '\0', "N", kLife,
     "How often the whole group is started again; never for usage, data and checkpoint errors, "
     "never twice without progress",
     "0"},
    {"monitor-interval", '\0', "SECONDS", kLife,
     "Longest time between two looks at the ranks; their ends are seen at once", "0.1"},
    {"grace-period", '\0', "SECONDS", kLife, "Time between the signal to stop and SIGKILL",
     "30, or 10 more than twice the longest save"},
    {"signals-to-handle", '\0', "LIST", kLife, "Signals that are passed on to the ranks",
     "SIGTERM,SIGINT,SIGHUP,SIGQUIT,SIGUSR1,SIGUSR2"},
    {"no-python", '\0', "", kLife, "Accepted as torchrun's: train is a program", ""},
    {"log-dir", '\0', "DIR", kOutput,
     "Folder for output and error files: DIR/<rdzv-id>_<random>/attempt_<n>/<local rank>/",
     "nothing is written"},
    {"redirects", 'r', "MODES", kOutput,
     "Streams that go into files: 0 none, 1 stdout, 2 stderr, 3 both, or rank:mode,...", "0"},
    {"tee", 't', "MODES", kOutput, "Streams that go to the terminal with a prefix, and into files",
     "0"},
    {"local-ranks-filter", '\0', "RANKS", kOutput, "Local ranks that the terminal shows: 0,1,...",
     "all"},
    {"duplicate-stdout-filters", '\0', "TEXTS", kOutput,
     "Lines of teed stdout that hold one of these go into filtered_stdout.log too", "none"},
    {"duplicate-stderr-filters", '\0', "TEXTS", kOutput,
     "Lines of teed stderr that hold one of these go into filtered_stderr.log too", "none"},
    {"help", 'h', "", kOutput, "Print this help", ""},
});

struct Foreign {
  std::string_view name;
  std::string_view reason;
};
constexpr auto kForeign = std::to_array<Foreign>({
    {"module", "train is a program, no Python module"},
    {"run-path", "train is a program, no Python script"},
    {"start-method", "every rank is a process of its own"},
    {"event-log-handler", "events go to the terminal; see --log-dir"},
    {"logs-specs", "the layout of --log-dir is fixed"},
});

std::string with_hyphens(std::string_view name) {
  std::string text(name);
  std::replace(text.begin(), text.end(), '_', '-');
  return text;
}

}  // namespace

std::span<const LaunchOptionSpec> launch_option_specs() { return kSpecs; }

std::string variable_of(const LaunchOptionSpec& spec) {
  std::string text = cat("PET_", spec.name);
  for (char& letter : text) {
    letter =
        letter == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  }
  return text;
}

const LaunchOptionSpec& launch_option(const std::string& word) {
  const bool is_long = word.starts_with("--");
  const std::string name = with_hyphens(is_long ? word.substr(2) : word.substr(1));
  std::vector<std::string> spellings;
  for (const LaunchOptionSpec& spec : kSpecs) {
    const bool is_short = !is_long && name.size() == 1 && spec.short_name == name[0];
    if (is_short || (is_long && spec.name == name)) return spec;
    spellings.push_back(cat("--", spec.name));
  }
  for (const Foreign& foreign : kForeign) {
    const bool is_it = is_long ? foreign.name == name : (name == "m" && foreign.name == "module");
    if (!is_it) continue;
    throw ConfigError(cat("torchrun's option ", quoted(word), " has no meaning for assay launch: ",
                          foreign.reason, ". Fix: leave it out"));
  }
  const std::optional<std::string> near = nearest_spelling(cat("--", name), spellings);
  throw ConfigError(cat("unknown option ", quoted(word), " of assay launch",
                        near ? cat("; did you mean ", quoted(*near), "?")
                             : ". Fix: see assay launch --help; options of the training go after "
                               "the word train"));
}

std::string launch_help() {
  std::string out =
      "Usage: assay launch [options] [--] train [CONFIG.json] [training options]\n"
      "Start and supervise the ranks of a run, with torchrun's options, environment and logs.\n";
  std::string_view group;
  for (const LaunchOptionSpec& spec : kSpecs) {
    if (spec.group != group) out += cat("\n", spec.group, ":\n");
    group = spec.group;
    const std::string letter = spec.short_name == '\0' ? "" : cat("-", spec.short_name, ", ");
    out += cat("  ", letter, "--", spec.name, spec.value_name.empty() ? "" : " ", spec.value_name,
               "\n      ", spec.help,
               spec.default_text.empty() ? "" : cat(" (default: ", spec.default_text, ")"), "\n");
  }
  return out +
         "\nNames may be written with - or _, values after = or a space. A variable PET_<NAME> is "
         "the\ndefault of its option, as for torchrun.\n"
         "Exit code: that of the first rank that failed, 128+N if signal N killed it.\n";
}

}  // namespace assay::launch
