#include "platform/problems.h"

#include <algorithm>
#include <string>

#include "base/text.h"
#include "base/version.h"

namespace assay::platform {
namespace {

using Problems = std::vector<EnvironmentProblem>;

constexpr uint64_t kMiB = uint64_t{1} << 20;
// NCCL keeps its buffers between ranks of one machine in /dev/shm; 64 MiB is Docker's default and
// just enough for two ranks.
constexpr uint64_t kMinimumShmBytes = 64 * kMiB;
// NCCL over InfiniBand registers its buffers, 4 MB a channel and peer; kernels' defaults of 64 KiB
// and 8 MiB are below that.
constexpr uint64_t kMinimumMemlockBytes = 64 * kMiB;
// Kernels move pages of sleeping daemons to swap on healthy machines too: a few MB mean nothing.
constexpr uint64_t kTolerableSwapBytes = 64 * kMiB;
// A training process with the CUDA libraries loaded takes about this before its first batch.
constexpr uint64_t kMinimumMemoryBytes = 2048 * kMiB;
constexpr uint64_t kMinimumInodes = 1000;  // a run folder with ten checkpoints takes about 100
// The driver itself holds up to about 1 GB of a large card.
constexpr int64_t kTolerableGpuUseBytes = int64_t{2} << 30;

// What the CUDA that LibTorch was built for demands.
struct CudaNeeds {
  int64_t driver = 580;  // CUDA 13.0 release notes, table of minimum drivers
  int64_t sm = 75;       // CUDA 13 dropped everything before Turing
  std::string fix = "update the driver, or set LIBTORCH= to a CUDA 12 LibTorch";
};

CudaNeeds needs_of(std::string_view cuda_version) {
  CudaNeeds needs;
  if (cuda_version.rfind("12.", 0) == 0) {
    needs.driver = 525;  // CUDA 12 minor version compatibility
    needs.sm = 50;
    needs.fix = "update the driver";
  }
  return needs;
}

std::string label(const GpuFacts& gpu) { return cat("GPU ", gpu.index, " (", gpu.name, ")"); }

std::string bytes_of(int64_t bytes) { return bytes_text(static_cast<uint64_t>(bytes)); }

std::string fix_of_unusable(const Environment& environment) {
  if (environment.nvml_problem.find("mismatch") != std::string::npos) {
    return "reboot, so that the kernel module and the library are of one version";
  }
  if (environment.is_container) {
    return "give the container its GPU: docker run --gpus all, with the NVIDIA container toolkit "
           "on the host";
  }
  if (environment.driver_version.empty()) {
    return "install the NVIDIA driver, 580 or newer, and reboot";
  }
  return "read the kernel's log (dmesg | grep -i nvrm), then reload the driver or reboot";
}

void add_driver_problems(const Environment& environment, const CudaNeeds& needs, Problems& out) {
  if (!environment.is_gpu_present) return;
  const bool is_usable = environment.is_nvml_usable && !environment.gpus.empty();
  if (!is_usable) {
    out.push_back({cat("a GPU is present (", join(environment.gpu_devices, ", "),
                       ") but cannot be used: ", environment.nvml_problem),
                   fix_of_unusable(environment), true});
  } else if (!environment.nvml_problem.empty()) {
    out.push_back(
        {environment.nvml_problem,
         "read the kernel's log (dmesg | grep -i nvrm); a GPU that fell off the bus needs "
         "a reboot or the provider",
         false});
  }
  const int64_t driver = driver_major(environment.driver_version);
  if (driver > 0 && driver < needs.driver) {
    out.push_back(
        {cat("driver ", environment.driver_version, " is below ", needs.driver), needs.fix, true});
  }
  for (const GpuFacts& gpu : environment.gpus) {
    const int64_t sm = gpu.compute_major * 10 + gpu.compute_minor;
    if (sm == 0 || sm >= needs.sm) continue;
    out.push_back({cat(label(gpu), " is sm_", sm, ", below sm_", needs.sm),
                   cat(needs.fix, "; with this LibTorch no driver makes it run"), true});
  }
}

void add_gpu_problems(const GpuFacts& gpu, Problems& out) {
  if (gpu.uncorrected_ecc_errors > 0) {
    out.push_back({cat(label(gpu), " has ", gpu.uncorrected_ecc_errors,
                       " uncorrected memory errors since the driver was loaded, expected 0"),
                   "do not train on it: show the provider nvidia-smi -q -d ECC", false});
  }
  if (gpu.pcie_width_now > 0 && gpu.pcie_width_now < gpu.pcie_width_max) {
    out.push_back({cat(label(gpu), " has a PCIe link of x", gpu.pcie_width_now, ", could be x",
                       gpu.pcie_width_max),
                   "look again under load (idle cards may narrow it); if it stays, ask the "
                   "provider about slot, riser and BIOS",
                   false});
  }
  if (gpu.mig_mode == "enabled") {
    out.push_back({cat(label(gpu), " has MIG enabled: a process gets one slice of its ",
                       bytes_of(gpu.memory_bytes)),
                   "rent the whole GPU, or read all numbers as those of the slice", false});
  }
  if (!gpu.other_process_ids.empty()) {
    std::vector<std::string> ids;
    for (const int64_t id : gpu.other_process_ids) ids.push_back(cat(id));
    out.push_back(
        {cat(label(gpu), " is used by ", ids.size(), " other processes (", join(ids, ", "), "), ",
             bytes_of(gpu.used_bytes), " of its memory are taken"),
         "end them or wait: timings and memory limits are not yours alone", false});
  } else if (gpu.used_bytes > kTolerableGpuUseBytes && gpu.used_bytes > gpu.memory_bytes / 20) {
    out.push_back({cat(label(gpu), " has ", bytes_of(gpu.used_bytes), " of ",
                       bytes_of(gpu.memory_bytes), " taken by processes that cannot be seen here"),
                   "ask who shares this GPU (another container or virtual machine)", false});
  }
}

// A container is often given some of the host's GPUs, so there a difference means nothing.
void add_missing_gpus(const Environment& environment, Problems& out) {
  const auto on_bus =
      std::count_if(environment.gpu_devices.begin(), environment.gpu_devices.end(),
                    [](const std::string& device) { return device.rfind("/dev/", 0) != 0; });
  const auto usable = static_cast<int64_t>(environment.gpus.size());
  if (environment.is_container || usable == 0 || usable >= on_bus) return;
  out.push_back({cat("GPUs that the driver shows: ", usable, ", on the PCI bus: ", on_bus),
                 "read the kernel's log (dmesg | grep -i nvrm), reboot, then ask the provider",
                 false});
}

void add_memory_problems(const Environment& environment, Problems& out) {
  const MemoryFacts& memory = environment.memory;
  if (memory.total_bytes > 0 && memory.available_bytes < kMinimumMemoryBytes) {
    out.push_back(
        {cat("only ", bytes_text(memory.available_bytes), " of memory are free, expected ",
             bytes_text(kMinimumMemoryBytes), " or more"),
         memory.cgroup_limit_bytes > 0
             ? cat("end other processes, or raise the container's limit of ",
                   bytes_text(memory.cgroup_limit_bytes))
             : std::string("end other processes, or take a larger machine"),
         false});
  }
  if (memory.swap_used_bytes > kTolerableSwapBytes) {
    out.push_back({cat(bytes_text(memory.swap_used_bytes), " of swap are in use, expected none"),
                   "free memory before training: a step that waits for swap is not a measurement",
                   false});
  }
  if (memory.shm_bytes < kMinimumShmBytes) {
    out.push_back({cat("/dev/shm has ", bytes_text(memory.shm_bytes), ", expected ",
                       bytes_text(kMinimumShmBytes), " or more"),
                   "docker run --shm-size=1g, or mount -o remount,size=1g /dev/shm (matters for "
                   "several GPUs)",
                   false});
  }
  if (environment.is_gpu_present && memory.memlock_limit_bytes < kMinimumMemlockBytes) {
    out.push_back(
        {cat("a process may lock ", bytes_text(memory.memlock_limit_bytes),
             " of memory (ulimit -l), expected ", bytes_text(kMinimumMemlockBytes), " or more"),
         "ulimit -l unlimited, or docker run --ulimit memlock=-1 (matters for several "
         "machines over InfiniBand)",
         false});
  }
}

void add_cpu_problems(const CpuFacts& cpu, Problems& out) {
  const double quota = cpu.cgroup_quota_cpus;
  if (quota > 0 && quota < static_cast<double>(cpu.logical_cpus) / 2) {
    out.push_back({cat("the cgroup quota is ", quota, " CPUs of the machine's ", cpu.logical_cpus),
                   cat("threads and data workers follow it (", cpu.available_cpus,
                       "); if data is late, raise it (docker run --cpus, Kubernetes limits.cpu)"),
                   false});
  }
}

void add_mount_problems(const MountFacts& mount, Problems& out) {
  const std::string place =
      cat(quoted(mount.path), " (", mount.device, " on ", mount.mount_point, ")");
  if (mount.is_read_only) {
    out.push_back({cat(place, " is mounted read-only"),
                   "choose a folder on another mount, or remount it for writing", false});
  }
  if (mount.total_inodes > 0 && mount.free_inodes < kMinimumInodes) {
    out.push_back({cat(place, " has ", mount.free_inodes, " free inodes, expected ", kMinimumInodes,
                       " or more"),
                   "remove small files there: a full inode table ends a run like a full disk",
                   false});
  }
}

}  // namespace

int64_t driver_major(std::string_view driver_version) {
  return parse_int64(driver_version.substr(0, driver_version.find('.'))).value_or(0);
}

std::vector<EnvironmentProblem> find_problems_for(const Environment& environment,
                                                  std::string_view cuda_version) {
  Problems problems;
  add_driver_problems(environment, needs_of(cuda_version), problems);
  add_missing_gpus(environment, problems);
  for (const GpuFacts& gpu : environment.gpus) add_gpu_problems(gpu, problems);
  add_memory_problems(environment, problems);
  add_cpu_problems(environment.cpu, problems);
  for (const MountFacts& mount : environment.mounts) add_mount_problems(mount, problems);
  std::stable_sort(problems.begin(), problems.end(),
                   [](const EnvironmentProblem& left, const EnvironmentProblem& right) {
                     return left.is_fatal && !right.is_fatal;
                   });
  return problems;
}

std::vector<EnvironmentProblem> find_problems(const Environment& environment) {
  return find_problems_for(environment, build_cuda_version());
}

}  // namespace assay::platform
