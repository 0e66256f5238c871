#include "platform/problems.h"

#include <limits>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"

namespace assay::platform {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

Environment healthy_cpu_machine() {
  Environment environment;
  environment.cpu.logical_cpus = 8;
  environment.cpu.available_cpus = 8;
  environment.memory.total_bytes = uint64_t{32} << 30;
  environment.memory.available_bytes = uint64_t{30} << 30;
  environment.memory.shm_bytes = uint64_t{16} << 30;
  environment.memory.memlock_limit_bytes = std::numeric_limits<uint64_t>::max();
  MountFacts mount;
  mount.path = "/data";
  mount.device = "/dev/vdb";
  mount.mount_point = "/data";
  mount.free_inodes = 100000;
  mount.total_inodes = 200000;
  environment.mounts = {mount};
  return environment;
}

Environment healthy_gpu_machine() {
  Environment environment = healthy_cpu_machine();
  environment.is_gpu_present = true;
  environment.gpu_devices = {"0000:65:00.0", "/dev/nvidia0"};
  environment.is_nvml_usable = true;
  environment.driver_version = "580.159.04";
  environment.driver_cuda_version = "13.0";
  GpuFacts gpu;
  gpu.name = "H200";
  gpu.memory_bytes = 150000000000;
  gpu.used_bytes = 600000000;
  gpu.compute_major = 9;
  gpu.pcie_width_now = 16;
  gpu.pcie_width_max = 16;
  environment.gpus = {gpu};
  return environment;
}

// The one problem of a machine that has exactly one.
EnvironmentProblem only_problem(const Environment& environment,
                                std::string_view cuda_version = "13.0") {
  const std::vector<EnvironmentProblem> problems = find_problems_for(environment, cuda_version);
  EXPECT_EQ(problems.size(), 1U);
  return problems.empty() ? EnvironmentProblem{} : problems.front();
}

TEST(Problems, AreNoneOnHealthyMachines) {
  EXPECT_THAT(find_problems_for(healthy_cpu_machine(), "13.0"), IsEmpty());
  EXPECT_THAT(find_problems_for(healthy_gpu_machine(), "13.0"), IsEmpty());
  EXPECT_THAT(find_problems_for(healthy_gpu_machine(), ""), IsEmpty());
}

TEST(Problems, NameDriverThatIsTooOld) {
  Environment environment = healthy_gpu_machine();
  environment.driver_version = "535.54";
  const EnvironmentProblem problem = only_problem(environment);
  EXPECT_EQ(problem.what, "driver 535.54 is below 580");
  EXPECT_EQ(problem.fix, "update the driver, or set LIBTORCH= to a CUDA 12 LibTorch");
  EXPECT_TRUE(problem.is_fatal);
}

TEST(Problems, AcceptOlderDriverWithLibTorchOfCudaTwelve) {
  Environment environment = healthy_gpu_machine();
  environment.driver_version = "535.54";
  EXPECT_THAT(find_problems_for(environment, "12.6"), IsEmpty());
  environment.driver_version = "470.1";
  EXPECT_EQ(only_problem(environment, "12.6").what, "driver 470.1 is below 525");
}

TEST(Problems, NameGpuThatIsTooOld) {
  Environment environment = healthy_gpu_machine();
  environment.gpus[0].name = "V100";
  environment.gpus[0].compute_major = 7;
  const EnvironmentProblem problem = only_problem(environment);
  EXPECT_EQ(problem.what, "GPU 0 (V100) is sm_70, below sm_75");
  EXPECT_THAT(problem.fix, HasSubstr("update the driver, or set LIBTORCH= to a CUDA 12 LibTorch"));
  EXPECT_TRUE(problem.is_fatal);
  EXPECT_THAT(find_problems_for(environment, "12.6"), IsEmpty());
}

TEST(Problems, AcceptTheOldestGpuOfCudaThirteen) {
  Environment environment = healthy_gpu_machine();
  environment.gpus[0].compute_major = 7;
  environment.gpus[0].compute_minor = 5;
  EXPECT_THAT(find_problems_for(environment, "13.0"), IsEmpty());
}

TEST(Problems, SayNothingAboutGpuOfUnknownArchitecture) {
  Environment environment = healthy_gpu_machine();
  environment.gpus[0].compute_major = 0;
  EXPECT_THAT(find_problems_for(environment, "13.0"), IsEmpty());
}

TEST(Problems, NameGpuWithoutDriver) {
  Environment environment = healthy_cpu_machine();
  environment.is_gpu_present = true;
  environment.gpu_devices = {"0000:65:00.0"};
  environment.nvml_problem = "libnvidia-ml.so.1: cannot open shared object file";
  const EnvironmentProblem problem = only_problem(environment);
  EXPECT_THAT(problem.what, AllOf(HasSubstr("0000:65:00.0"), HasSubstr("libnvidia-ml.so.1")));
  EXPECT_THAT(problem.fix, HasSubstr("install the NVIDIA driver"));
  EXPECT_TRUE(problem.is_fatal);
}

TEST(Problems, PointContainersAtTheirRuntime) {
  Environment environment = healthy_cpu_machine();
  environment.is_container = true;
  environment.is_gpu_present = true;
  environment.nvml_problem = "libnvidia-ml.so.1: cannot open shared object file";
  EXPECT_THAT(only_problem(environment).fix, HasSubstr("--gpus all"));
}

TEST(Problems, AskForRebootAfterDriverUpdate) {
  Environment environment = healthy_cpu_machine();
  environment.is_gpu_present = true;
  environment.driver_version = "580.95.05";
  environment.nvml_problem = "nvmlInit_v2: Driver/library version mismatch (code 18)";
  EXPECT_THAT(only_problem(environment).fix, HasSubstr("reboot"));
}

TEST(Problems, NameDriverThatShowsNoGpu) {
  Environment environment = healthy_gpu_machine();
  environment.gpus.clear();
  environment.nvml_problem = "the driver shows no GPU to this process";
  const EnvironmentProblem problem = only_problem(environment);
  EXPECT_TRUE(problem.is_fatal);
  EXPECT_THAT(problem.what, HasSubstr("shows no GPU"));
}

TEST(Problems, NameGpuThatFellOffTheBus) {
  Environment environment = healthy_gpu_machine();
  environment.gpu_devices = {"0000:65:00.0", "0000:66:00.0"};
  const EnvironmentProblem problem = only_problem(environment);
  EXPECT_EQ(problem.what, "GPUs that the driver shows: 1, on the PCI bus: 2");
  EXPECT_FALSE(problem.is_fatal);
}

TEST(Problems, AcceptContainerWithSomeOfTheHostsGpus) {
  Environment environment = healthy_gpu_machine();
  environment.is_container = true;
  environment.gpu_devices = {"0000:65:00.0", "0000:66:00.0"};
  EXPECT_THAT(find_problems_for(environment, "13.0"), IsEmpty());
}

TEST(Problems, NameNarrowLink) {
  Environment environment = healthy_gpu_machine();
  environment.gpus[0].pcie_width_now = 8;
  EXPECT_EQ(only_problem(environment).what, "GPU 0 (H200) has a PCIe link of x8, could be x16");
}

TEST(Problems, NameMemoryErrors) {
  Environment environment = healthy_gpu_machine();
  environment.gpus[0].uncorrected_ecc_errors = 3;
  EXPECT_THAT(only_problem(environment).what, HasSubstr("3 uncorrected memory errors"));
}

TEST(Problems, NameOtherProcesses) {
  Environment environment = healthy_gpu_machine();
  environment.gpus[0].other_process_ids = {41, 42};
  EXPECT_THAT(only_problem(environment).what, HasSubstr("used by 2 other processes (41, 42)"));
}

TEST(Problems, NameMemoryTakenByNobodyVisible) {
  Environment environment = healthy_gpu_machine();
  environment.gpus[0].used_bytes = 40000000000;
  EXPECT_THAT(only_problem(environment).what, HasSubstr("cannot be seen here"));
}

TEST(Problems, NamePartitionedGpu) {
  Environment environment = healthy_gpu_machine();
  environment.gpus[0].mig_mode = "enabled";
  EXPECT_THAT(only_problem(environment).what, HasSubstr("MIG"));
}

TEST(Problems, NameSmallSharedMemoryOnlyBelowTheDefaultOfContainers) {
  Environment environment = healthy_cpu_machine();
  environment.memory.shm_bytes = uint64_t{64} << 20;
  EXPECT_THAT(find_problems_for(environment, "13.0"), IsEmpty());
  environment.memory.shm_bytes = uint64_t{1} << 20;
  EXPECT_THAT(only_problem(environment).what, HasSubstr("/dev/shm"));
}

TEST(Problems, NameMemlockOnlyWhereThereIsGpu) {
  Environment environment = healthy_cpu_machine();
  environment.memory.memlock_limit_bytes = 65536;
  EXPECT_THAT(find_problems_for(environment, "13.0"), IsEmpty());
  environment = healthy_gpu_machine();
  environment.memory.memlock_limit_bytes = 65536;
  EXPECT_THAT(only_problem(environment).what, HasSubstr("ulimit -l"));
}

TEST(Problems, NameSwapInUse) {
  Environment environment = healthy_cpu_machine();
  environment.memory.swap_bytes = uint64_t{4} << 30;
  EXPECT_THAT(find_problems_for(environment, "13.0"), IsEmpty());
  environment.memory.swap_used_bytes = uint64_t{1} << 30;
  EXPECT_THAT(only_problem(environment).what, HasSubstr("of swap are in use"));
}

TEST(Problems, NameTheContainersLimitWhenMemoryIsShort) {
  Environment environment = healthy_cpu_machine();
  environment.memory.available_bytes = 500000000;
  environment.memory.cgroup_limit_bytes = 1000000000;
  const EnvironmentProblem problem = only_problem(environment);
  EXPECT_THAT(problem.what, HasSubstr("500.0 MB"));
  EXPECT_THAT(problem.fix, HasSubstr("limit of 1.0 GB"));
}

TEST(Problems, NameQuotaFarBelowTheMachine) {
  Environment environment = healthy_cpu_machine();
  environment.cpu.cgroup_quota_cpus = 4;
  EXPECT_THAT(find_problems_for(environment, "13.0"), IsEmpty());
  environment.cpu.cgroup_quota_cpus = 2;
  environment.cpu.available_cpus = 2;
  const EnvironmentProblem problem = only_problem(environment);
  EXPECT_EQ(problem.what, "the cgroup quota is 2 CPUs of the machine's 8");
  EXPECT_FALSE(problem.is_fatal);
}

TEST(Problems, NameReadOnlyAndInodePoorMounts) {
  Environment environment = healthy_cpu_machine();
  environment.mounts[0].is_read_only = true;
  EXPECT_EQ(only_problem(environment).what, "\"/data\" (/dev/vdb on /data) is mounted read-only");
  environment.mounts[0].is_read_only = false;
  environment.mounts[0].free_inodes = 12;
  EXPECT_THAT(only_problem(environment).what, HasSubstr("has 12 free inodes"));
}

TEST(Problems, TakeFileSystemWithoutInodeCountAsWell) {
  Environment environment = healthy_cpu_machine();
  environment.mounts[0].free_inodes = 0;
  environment.mounts[0].total_inodes = 0;
  EXPECT_THAT(find_problems_for(environment, "13.0"), IsEmpty());
}

TEST(Problems, ComeWithFatalOnesFirstAndAlwaysWithFix) {
  Environment environment = healthy_gpu_machine();
  environment.memory.shm_bytes = 0;
  environment.gpus[0].pcie_width_now = 4;
  environment.gpus[0].compute_major = 6;
  environment.driver_version = "470.1";
  const std::vector<EnvironmentProblem> problems = find_problems_for(environment, "13.0");
  ASSERT_EQ(problems.size(), 4U);
  EXPECT_TRUE(problems[0].is_fatal);
  EXPECT_TRUE(problems[1].is_fatal);
  EXPECT_FALSE(problems[2].is_fatal);
  for (const EnvironmentProblem& problem : problems) EXPECT_FALSE(problem.fix.empty());
}

TEST(DriverMajor, IsTheFirstNumber) {
  EXPECT_EQ(driver_major("580.159.04"), 580);
  EXPECT_EQ(driver_major("580"), 580);
  EXPECT_EQ(driver_major(""), 0);
  EXPECT_EQ(driver_major("beta"), 0);
}

}  // namespace
}  // namespace assay::platform
