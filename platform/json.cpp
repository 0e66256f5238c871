#include <string>

#include <nlohmann/json.hpp>

#include "platform/environment.h"

namespace assay::platform {
namespace {

using Json = nlohmann::ordered_json;

Json cpu_json(const CpuFacts& cpu) {
  return {{"model", cpu.model},
          {"logical_cpus", cpu.logical_cpus},
          {"available_cpus", cpu.available_cpus},
          {"cgroup_quota_cpus", cpu.cgroup_quota_cpus},
          {"numa_nodes", cpu.numa_nodes},
          {"features", cpu.features},
          {"governor", cpu.governor}};
}

Json memory_json(const MemoryFacts& memory) {
  return {{"total_bytes", memory.total_bytes},
          {"available_bytes", memory.available_bytes},
          {"cgroup_limit_bytes", memory.cgroup_limit_bytes},
          {"swap_bytes", memory.swap_bytes},
          {"swap_used_bytes", memory.swap_used_bytes},
          {"shm_bytes", memory.shm_bytes},
          {"memlock_limit_bytes", memory.memlock_limit_bytes}};
}

Json mount_json(const MountFacts& mount) {
  return {{"path", mount.path},
          {"mount_point", mount.mount_point},
          {"device", mount.device},
          {"file_system", mount.file_system},
          {"free_bytes", mount.free_bytes},
          {"total_bytes", mount.total_bytes},
          {"free_inodes", mount.free_inodes},
          {"total_inodes", mount.total_inodes},
          {"is_root_disk", mount.is_root_disk},
          {"is_read_only", mount.is_read_only}};
}

Json gpu_json(const GpuFacts& gpu) {
  return {{"index", gpu.index},
          {"name", gpu.name},
          {"uuid", gpu.uuid},
          {"pci_bus_id", gpu.pci_bus_id},
          {"memory_bytes", gpu.memory_bytes},
          {"used_bytes", gpu.used_bytes},
          {"compute_major", gpu.compute_major},
          {"compute_minor", gpu.compute_minor},
          {"pcie_generation_now", gpu.pcie_generation_now},
          {"pcie_generation_max", gpu.pcie_generation_max},
          {"pcie_width_now", gpu.pcie_width_now},
          {"pcie_width_max", gpu.pcie_width_max},
          {"sm_clock_mhz", gpu.sm_clock_mhz},
          {"sm_clock_max_mhz", gpu.sm_clock_max_mhz},
          {"memory_clock_mhz", gpu.memory_clock_mhz},
          {"power_watts", gpu.power_watts},
          {"power_limit_watts", gpu.power_limit_watts},
          {"temperature_c", gpu.temperature_c},
          {"numa_node", gpu.numa_node},
          {"ecc_mode", gpu.ecc_mode},
          {"mig_mode", gpu.mig_mode},
          {"persistence_mode", gpu.persistence_mode},
          {"uncorrected_ecc_errors", gpu.uncorrected_ecc_errors},
          {"other_process_ids", gpu.other_process_ids}};
}

}  // namespace

std::string to_json(const Environment& environment) {
  Json json = {{"recorded_utc", environment.recorded_utc},
               {"host_name", environment.host_name},
               {"os", environment.os},
               {"kernel", environment.kernel},
               {"is_container", environment.is_container},
               {"cpu", cpu_json(environment.cpu)},
               {"memory", memory_json(environment.memory)}};
  json["mounts"] = Json::array();
  for (const MountFacts& mount : environment.mounts) json["mounts"].push_back(mount_json(mount));
  json["is_gpu_present"] = environment.is_gpu_present;
  json["gpu_devices"] = environment.gpu_devices;
  json["is_nvml_usable"] = environment.is_nvml_usable;
  json["nvml_problem"] = environment.nvml_problem;
  json["driver_version"] = environment.driver_version;
  json["driver_cuda_version"] = environment.driver_cuda_version;
  json["gpus"] = Json::array();
  for (const GpuFacts& gpu : environment.gpus) json["gpus"].push_back(gpu_json(gpu));
  json["topology"] = environment.topology;
  // Paths and names may hold bytes that are not UTF-8; they are shown with the replacement mark.
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace assay::platform
