#include "platform/nvml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "platform/gpus.h"
#include "tests/platform/fixture_tree.h"

namespace assay::platform {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(Nvml, FillsAllFields) {
  const NvmlFacts facts = read_nvml(ASSAY_SIMULATED_NVML);
  ASSERT_TRUE(facts.is_usable);
  EXPECT_EQ(facts.problem, "");
  EXPECT_EQ(facts.driver_version, "580.95.05");
  EXPECT_EQ(facts.driver_cuda_version, "13.1");
  ASSERT_EQ(facts.gpus.size(), 3U);
  const GpuFacts& gpu = facts.gpus[1];
  EXPECT_EQ(gpu.index, 1);
  EXPECT_EQ(gpu.name, "SIM H200");
  EXPECT_EQ(gpu.uuid, "GPU-1234");
  EXPECT_EQ(gpu.pci_bus_id, "0000:a1:00.0");
  EXPECT_EQ(gpu.memory_bytes, 150000000000);
  EXPECT_EQ(gpu.used_bytes, 1000000000);
  EXPECT_EQ(gpu.compute_major, 9);
  EXPECT_EQ(gpu.compute_minor, 0);
  EXPECT_EQ(gpu.pcie_generation_now, 4);
  EXPECT_EQ(gpu.pcie_generation_max, 5);
  EXPECT_EQ(gpu.pcie_width_now, 8);
  EXPECT_EQ(gpu.pcie_width_max, 16);
  EXPECT_EQ(gpu.sm_clock_mhz, 1980);
  EXPECT_EQ(gpu.sm_clock_max_mhz, 1999);
  EXPECT_EQ(gpu.memory_clock_mhz, 3201);
  EXPECT_EQ(gpu.power_watts, 76.5);
  EXPECT_EQ(gpu.power_limit_watts, 700.0);
  EXPECT_EQ(gpu.temperature_c, 31);
  EXPECT_EQ(gpu.ecc_mode, "enabled");
  EXPECT_EQ(gpu.mig_mode, "");
  EXPECT_EQ(gpu.persistence_mode, "disabled");
  EXPECT_EQ(gpu.uncorrected_ecc_errors, 7);
  EXPECT_THAT(gpu.other_process_ids, IsEmpty());
}

TEST(Nvml, AsksAgainWhenThereAreMoreProcessesThanRoom) {
  const NvmlFacts facts = read_nvml(ASSAY_SIMULATED_NVML);
  ASSERT_EQ(facts.gpus.at(0).other_process_ids.size(), 40U);
  EXPECT_EQ(facts.gpus[0].other_process_ids.front(), 1000);
  EXPECT_EQ(facts.gpus[0].other_process_ids.back(), 1039);
}

TEST(Nvml, DrawsTheLinkMatrix) {
  EXPECT_EQ(read_nvml(ASSAY_SIMULATED_NVML).topology,
            "      GPU0  GPU1  GPU2  \n"
            "GPU0  X     NV2   SYS   \n"
            "GPU1  NV2   X     SYS   \n"
            "GPU2  SYS   SYS   X     \n");
}

TEST(Nvml, LeavesEmptyWhatTheLibraryDoesNotOffer) {
  const NvmlFacts facts = read_nvml(ASSAY_SIMULATED_NVML_OLD);
  EXPECT_TRUE(facts.is_usable);
  EXPECT_EQ(facts.driver_version, "");
  EXPECT_EQ(facts.driver_cuda_version, "");
  ASSERT_EQ(facts.gpus.size(), 1U);
  EXPECT_EQ(facts.gpus[0].name, "");
  EXPECT_EQ(facts.gpus[0].memory_bytes, 0);
  EXPECT_EQ(facts.gpus[0].ecc_mode, "");
  EXPECT_EQ(facts.problem, "GPU 1 of 2 cannot be opened");
  EXPECT_EQ(facts.topology, "");
}

TEST(Nvml, RepeatsTheLibrarysReason) {
  const NvmlFacts facts = read_nvml(ASSAY_SIMULATED_NVML_MISMATCH);
  EXPECT_FALSE(facts.is_usable);
  EXPECT_EQ(facts.problem, "nvmlInit_v2: Driver/library version mismatch (code 18)");
}

TEST(Nvml, RepeatsTheLoadersReason) {
  const NvmlFacts facts = read_nvml("libabsent-nvml.so.1");
  EXPECT_FALSE(facts.is_usable);
  EXPECT_THAT(facts.problem, HasSubstr("libabsent-nvml.so.1: cannot open shared object file"));
}

TEST(Gpus, TakeTheNumaNodeFromTheBus) {
  FixtureTree tree;
  tree.add("/sys/bus/pci/devices/0000:a1:00.0/numa_node", "1\n");
  Environment environment;
  read_gpus(tree.roots(2, ASSAY_SIMULATED_NVML), environment);
  EXPECT_TRUE(environment.is_gpu_present);
  EXPECT_EQ(environment.gpus.at(0).numa_node, -1);
  EXPECT_EQ(environment.gpus.at(1).numa_node, 1);
}

}  // namespace
}  // namespace assay::platform
