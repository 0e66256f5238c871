#include "platform/doctor_report.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "base/version.h"

namespace assay::platform {
namespace {

constexpr size_t kLabelWidth = 12;

// One "  label       value" line; further lines of the value are indented below it.
void add_line(std::string& out, std::string label, const std::string& value) {
  label.resize(std::max(label.size() + 1, kLabelWidth), ' ');
  for (const std::string& part : split(value, '\n')) {
    out += cat("  ", label, part, "\n");
    label.assign(kLabelWidth, ' ');
  }
}

std::string or_unknown(const std::string& text) { return text.empty() ? "unknown" : text; }

void add_system(const Environment& environment, std::string& out) {
  out += "System\n";
  add_line(out, "host", environment.host_name);
  add_line(out, "os", or_unknown(environment.os));
  add_line(out, "kernel", or_unknown(environment.kernel));
  add_line(out, "container", environment.is_container ? "yes" : "no");
}

void add_cpu(const CpuFacts& cpu, std::string& out) {
  out += "\nCPU\n";
  add_line(out, "model", or_unknown(cpu.model));
  const std::string quota = cpu.cgroup_quota_cpus > 0 ? cat("cgroup quota ", cpu.cgroup_quota_cpus)
                                                      : std::string("no cgroup quota");
  add_line(out, "cpus", cat(cpu.available_cpus, " usable of ", cpu.logical_cpus, " (", quota, ")"));
  add_line(out, "numa nodes", cat(cpu.numa_nodes));
  add_line(out, "features", cpu.features.empty() ? "none of interest" : join(cpu.features, " "));
  add_line(out, "governor", or_unknown(cpu.governor));
}

void add_memory(const MemoryFacts& memory, std::string& out) {
  out += "\nMemory\n";
  add_line(out, "main",
           cat(bytes_text(memory.available_bytes), " free of ", bytes_text(memory.total_bytes)));
  add_line(out, "cgroup",
           memory.cgroup_limit_bytes > 0 ? cat("limit ", bytes_text(memory.cgroup_limit_bytes))
                                         : std::string("no limit"));
  add_line(out, "swap",
           cat(bytes_text(memory.swap_used_bytes), " used of ", bytes_text(memory.swap_bytes)));
  add_line(out, "/dev/shm", bytes_text(memory.shm_bytes));
  add_line(out, "memlock",
           memory.memlock_limit_bytes == std::numeric_limits<uint64_t>::max()
               ? std::string("unlimited")
               : bytes_text(memory.memlock_limit_bytes));
}

void add_mounts(const std::vector<MountFacts>& mounts, std::string& out) {
  out += "\nDisks\n";
  for (const MountFacts& mount : mounts) {
    std::string text = cat(bytes_text(mount.free_bytes), " free of ", bytes_text(mount.total_bytes),
                           ", ", or_unknown(mount.device), " ", mount.file_system, " on ",
                           or_unknown(mount.mount_point));
    if (mount.total_inodes > 0) text += cat(", ", mount.free_inodes, " free inodes");
    if (mount.is_root_disk) text += ", the root disk";
    if (mount.is_read_only) text += ", read-only";
    add_line(out, mount.path, text);
  }
}

void add_gpu(const GpuFacts& gpu, std::string& out) {
  add_line(out, cat("GPU ", gpu.index),
           cat(or_unknown(gpu.name), ", sm_", gpu.compute_major, gpu.compute_minor, ", ",
               bytes_text(static_cast<uint64_t>(gpu.used_bytes)), " used of ",
               bytes_text(static_cast<uint64_t>(gpu.memory_bytes)), "\nPCIe ",
               or_unknown(gpu.pci_bus_id), ", generation ", gpu.pcie_generation_now, " of ",
               gpu.pcie_generation_max, ", x", gpu.pcie_width_now, " of x", gpu.pcie_width_max,
               ", NUMA node ", gpu.numa_node, "\nSM clock ", gpu.sm_clock_mhz, " of ",
               gpu.sm_clock_max_mhz, " MHz, memory clock ", gpu.memory_clock_mhz, " MHz, ",
               gpu.power_watts, " of ", gpu.power_limit_watts, " W, ", gpu.temperature_c,
               " C\nECC ", or_unknown(gpu.ecc_mode), ", MIG ", or_unknown(gpu.mig_mode),
               ", persistence ", or_unknown(gpu.persistence_mode)));
}

void add_gpus(const Environment& environment, std::string& out) {
  out += "\nGPU\n";
  if (!environment.is_gpu_present) {
    add_line(out, "present",
             "none (no NVIDIA device on the PCI bus, no /dev/nvidia<n>): training runs on the CPU");
    return;
  }
  add_line(out, "seen as", join(environment.gpu_devices, ", "));
  add_line(out, "driver",
           cat(or_unknown(environment.driver_version), ", supports CUDA ",
               or_unknown(environment.driver_cuda_version)));
  for (const GpuFacts& gpu : environment.gpus) add_gpu(gpu, out);
  if (!environment.topology.empty()) {
    std::string matrix = environment.topology;
    while (!matrix.empty() && matrix.back() == '\n') matrix.pop_back();
    add_line(out, "links", matrix);
  }
}

void add_programs(const TrainerCheck& trainer, std::string& out) {
  out += "\nPrograms\n";
  add_line(out, "assay",
           cat(version_string(), " (commit ", git_commit(), ", ", build_compiler(), ")"));
  add_line(out, "trainer",
           trainer.is_usable ? cat(trainer.path, "\n", trainer.version)
                             : cat(trainer.path, " (not usable, see below)"));
}

void add_problems(const std::vector<EnvironmentProblem>& problems, std::string& out) {
  out += "\nProblems\n";
  if (problems.empty()) out += "  none found\n";
  for (const EnvironmentProblem& problem : problems) {
    add_line(out, problem.is_fatal ? "fatal" : "warning",
             cat(problem.what, "\nFix: ", problem.fix));
  }
}

}  // namespace

DoctorRecord make_doctor_record(Environment environment, TrainerCheck trainer) {
  DoctorRecord record;
  record.problems = find_problems(environment);
  if (!trainer.is_usable) {
    const auto first_warning =
        std::find_if(record.problems.begin(), record.problems.end(),
                     [](const EnvironmentProblem& problem) { return !problem.is_fatal; });
    record.problems.insert(first_warning, {trainer.problem, trainer.fix, true});
  }
  record.environment = std::move(environment);
  record.trainer = std::move(trainer);
  return record;
}

bool has_fatal_problem(const DoctorRecord& record) {
  return std::any_of(record.problems.begin(), record.problems.end(),
                     [](const EnvironmentProblem& problem) { return problem.is_fatal; });
}

std::string doctor_text(const DoctorRecord& record) {
  std::string out = cat("Environment of this machine, ", record.environment.recorded_utc, "\n\n");
  add_system(record.environment, out);
  add_cpu(record.environment.cpu, out);
  add_memory(record.environment.memory, out);
  add_mounts(record.environment.mounts, out);
  add_gpus(record.environment, out);
  add_programs(record.trainer, out);
  add_problems(record.problems, out);
  return out;
}

std::string doctor_json(const DoctorRecord& record) {
  using Json = nlohmann::ordered_json;
  Json json;
  json["environment"] = Json::parse(to_json(record.environment));
  json["program"] = {{"version", version_string()},
                     {"git_commit", git_commit()},
                     {"libtorch_version", build_libtorch_version()},
                     {"cuda_version", build_cuda_version()}};
  json["trainer"] = {{"path", record.trainer.path},
                     {"is_usable", record.trainer.is_usable},
                     {"version", record.trainer.version},
                     {"problem", record.trainer.problem},
                     {"fix", record.trainer.fix}};
  json["problems"] = Json::array();
  for (const EnvironmentProblem& problem : record.problems) {
    json["problems"].push_back(
        {{"what", problem.what}, {"fix", problem.fix}, {"is_fatal", problem.is_fatal}});
  }
  json["has_fatal_problem"] = has_fatal_problem(record);
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace assay::platform
