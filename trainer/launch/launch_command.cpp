#include "trainer/launch/launch_command.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "platform/environment.h"
#include "platform/gpus.h"
#include "platform/programs.h"
#include "platform/roots.h"
#include "trainer/launch/address.h"
#include "trainer/launch/launch_log.h"
#include "trainer/launch/launch_option_table.h"
#include "trainer/launch/launch_options.h"
#include "trainer/launch/local_ranks.h"
#include "trainer/launch/supervisor.h"

namespace assay::launch {
namespace {

std::string trainer_path() {
  const platform::TrainerProgram trainer = platform::find_trainer();
  const std::string problem = platform::trainer_problem(trainer);
  if (problem.empty()) return trainer.path;
  throw CouldNotRunError(
      cat("cannot start the trainer: ", problem, ". Fix: ", platform::trainer_fix(trainer)));
}

std::vector<platform::GpuFacts> gpus_of_ranks(const platform::Roots& roots) {
  platform::Environment environment;
  platform::read_gpus(roots, environment);
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  return visible_gpus(environment.gpus,
                      visible == nullptr ? std::nullopt : std::optional<std::string>(visible));
}

std::string cpus_text(const std::vector<int64_t>& cpus) {
  return cat(cpus.size(), " CPUs from ", cpus.front(), " to ", cpus.back());
}

// By local rank; empty where ranks are not bound.
std::vector<std::vector<int64_t>> choose_cpus(const GroupPlan& plan, const platform::Roots& roots,
                                              const std::vector<platform::GpuFacts>& gpus,
                                              const LaunchLog& log) {
  const std::vector<NumaNode> nodes = read_numa_nodes(roots);
  const bool is_default = plan.options.numa_binding == "auto";
  const bool is_useful = nodes.size() > 1 && plan.num_local_ranks > 1;
  if (plan.options.numa_binding == "none" || (is_default && !is_useful)) return {};
  if (nodes.empty()) {
    log.warning(
        "--numa-binding node: the kernel does not say which NUMA nodes there are; no rank "
        "is bound");
    return {};
  }
  NumaRequest request;
  request.num_local_ranks = plan.num_local_ranks;
  request.allowed = allowed_cpus();
  for (const platform::GpuFacts& gpu : gpus) request.node_of_gpu.push_back(gpu.numa_node);
  const std::vector<std::vector<int64_t>> cpus = plan_cpus(nodes, request);
  for (size_t rank = 0; rank < cpus.size(); ++rank) {
    if (cpus[rank].empty()) {
      log.warning(cat("local rank ", rank, " is not bound: this process may not use the CPUs of ",
                      "its NUMA node"));
    } else {
      log.info(cat("local rank ", rank, " is bound to ", cpus_text(cpus[rank]),
                   " (--numa-binding node)"));
    }
  }
  return cpus;
}

GroupPlan make_plan(LaunchOptions options, const LaunchLog& log) {
  const platform::Roots roots;
  GroupPlan plan;
  plan.program = trainer_path();
  const bool is_number = parse_int64(options.num_local_ranks).has_value();
  const bool needs_gpus = !is_number || options.numa_binding != "none";
  const std::vector<platform::GpuFacts> gpus =
      needs_gpus ? gpus_of_ranks(roots) : std::vector<platform::GpuFacts>();
  plan.num_local_ranks =
      count_local_ranks(options.num_local_ranks, static_cast<int64_t>(gpus.size()),
                        is_number ? 1 : platform::available_cpus());
  if (options.is_standalone) {
    options.run_id = trimmed(read_file("/proc/sys/kernel/random/uuid"));
  }
  plan.options = std::move(options);
  plan.cpus = choose_cpus(plan, roots, gpus, log);
  return plan;
}

void explain_defaults(const GroupPlan& plan, const LaunchLog& log) {
  if (plan.num_local_ranks > 1 && std::getenv("OMP_NUM_THREADS") == nullptr) {
    log.info("OMP_NUM_THREADS=1 is set for each rank; set it yourself for more CPU threads");
  }
  const std::string& address = plan.options.master_addr;
  if (plan.options.num_nodes == 1 && !address.empty() && !is_loopback(address) &&
      address != "localhost") {
    log.info(cat("--master-addr ", address, " is not used: one node meets on loopback"));
  }
}

}  // namespace

int run_launch_command(std::span<const std::string> words) {
  LaunchOptions options = parse_launch_options(words, std::getenv);
  if (options.is_help) {
    const std::string text = launch_help();
    std::fwrite(text.data(), 1, text.size(), stdout);
    return static_cast<int>(ExitCode::kOk);
  }
  // A reader of the ranks' output that goes away must not end the run.
  std::signal(SIGPIPE, SIG_IGN);
  const LaunchLog log(log_level_from_environment());
  const GroupPlan plan = make_plan(std::move(options), log);
  explain_defaults(plan, log);
  return Supervisor(plan, log).run();
}

}  // namespace assay::launch
