// The record of this machine: CPU, memory, cgroup limits, disks, GPUs, driver, libraries. Reads
// /proc, /sys and NVML (by dlopen); never changes a setting. Torch-free.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace assay::platform {

struct CpuFacts {
  std::string model;
  int64_t logical_cpus = 0;      // of the machine
  int64_t available_cpus = 0;    // affinity and cgroup quota taken into account, >= 1
  double cgroup_quota_cpus = 0;  // 0: no quota
  int64_t numa_nodes = 1;
  std::vector<std::string> features;  // avx2, avx512f, amx_bf16, sha_ni, ... of interest
  std::string governor;               // empty: unknown
};

struct MemoryFacts {
  uint64_t total_bytes = 0;
  uint64_t available_bytes = 0;
  uint64_t cgroup_limit_bytes = 0;  // 0: none
  uint64_t swap_bytes = 0;          // size
  uint64_t swap_used_bytes = 0;
  uint64_t shm_bytes = 0;            // size of /dev/shm
  uint64_t memlock_limit_bytes = 0;  // RLIMIT_MEMLOCK, UINT64_MAX: unlimited
};

struct MountFacts {
  std::string path;  // what was asked about
  std::string mount_point;
  std::string device;
  std::string file_system;
  uint64_t free_bytes = 0;
  uint64_t total_bytes = 0;
  uint64_t free_inodes = 0;
  uint64_t total_inodes = 0;  // 0: the file system does not count inodes
  bool is_root_disk = false;
  bool is_read_only = false;
};

struct GpuFacts {
  int64_t index = 0;
  std::string name;
  std::string uuid;
  std::string pci_bus_id;  // as in /sys/bus/pci/devices: "0000:65:00.0"
  int64_t memory_bytes = 0;
  int64_t used_bytes = 0;
  int64_t compute_major = 0;  // sm_<major><minor>
  int64_t compute_minor = 0;
  int64_t pcie_generation_now = 0, pcie_generation_max = 0;
  int64_t pcie_width_now = 0, pcie_width_max = 0;
  int64_t sm_clock_mhz = 0, sm_clock_max_mhz = 0, memory_clock_mhz = 0;
  double power_watts = 0, power_limit_watts = 0;
  int64_t temperature_c = 0;
  int64_t numa_node = -1;
  std::string ecc_mode, mig_mode, persistence_mode;
  int64_t uncorrected_ecc_errors = 0;      // since the driver was loaded
  std::vector<int64_t> other_process_ids;  // compute processes of others on this GPU
};

struct Environment {
  std::string recorded_utc;
  std::string host_name;
  std::string os;  // PRETTY_NAME of os-release
  std::string kernel;
  bool is_container = false;
  CpuFacts cpu;
  MemoryFacts memory;
  std::vector<MountFacts> mounts;        // of the paths asked for
  bool is_gpu_present = false;           // PCI device of NVIDIA, or /dev/nvidia<n>
  std::vector<std::string> gpu_devices;  // where it was seen: "0000:65:00.0", "/dev/nvidia0"
  bool is_nvml_usable = false;
  std::string nvml_problem;         // why not, if present but unusable
  std::string driver_version;       // "580.159.04"; empty without a driver
  std::string driver_cuda_version;  // the newest CUDA the driver supports, "13.0"
  std::vector<GpuFacts> gpus;
  std::string topology;  // GPU-to-GPU link matrix as text; empty for < 2 GPUs
};

// `paths`: folders whose mounts matter (output, data, cache).
Environment record_environment(const std::vector<std::string>& paths);

// JSON object text of the record, keys as above. An unlimited memlock_limit_bytes is UINT64_MAX.
std::string to_json(const Environment& environment);

struct EnvironmentProblem {
  std::string what;       // "driver 535.54 is below 580"
  std::string fix;        // "update the driver, or set LIBTORCH= to a CUDA 12 LibTorch"
  bool is_fatal = false;  // the GPU cannot be used at all
};
// What looks wrong, most serious first (driver < 580, sm < 75, present but unusable GPU, shm below
// 64 MB, memlock, swap in use, quota far below the CPUs, other processes on the GPU, link narrower
// than it could be under load, ECC errors).
std::vector<EnvironmentProblem> find_problems(const Environment& environment);

// CPUs this process may use: affinity mask and cgroup v1/v2 quota (rounded down, at least 1).
int64_t available_cpus();

}  // namespace assay::platform
