#include "platform/gpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "tests/platform/fixture_tree.h"

namespace assay::platform {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

void add_pci(FixtureTree& tree, const std::string& address, const std::string& vendor,
             const std::string& kind) {
  tree.add(cat("/sys/bus/pci/devices/", address, "/vendor"), vendor + "\n");
  tree.add(cat("/sys/bus/pci/devices/", address, "/class"), kind + "\n");
}

Environment gpus_of(const Roots& roots) {
  Environment environment;
  read_gpus(roots, environment);
  return environment;
}

TEST(Gpus, AreAbsentOnPlainMachine) {
  FixtureTree tree;
  add_pci(tree, "0000:00:01.0", "0x1af4", "0x010000");
  const Environment environment = gpus_of(tree.roots());
  EXPECT_FALSE(environment.is_gpu_present);
  EXPECT_FALSE(environment.is_nvml_usable);
  EXPECT_EQ(environment.nvml_problem, "");
  EXPECT_EQ(environment.driver_version, "");
}

TEST(Gpus, AreSeenOnTheBusByVendorAndDisplayClass) {
  FixtureTree tree;
  add_pci(tree, "0000:65:00.0", "0x10de", "0x030200");
  add_pci(tree, "0000:66:00.0", "0x10de", "0x030000");
  add_pci(tree, "0000:66:00.1", "0x10de", "0x040300");  // its sound function
  add_pci(tree, "0000:01:00.0", "0x1002", "0x030000");  // of another maker
  const Environment environment = gpus_of(tree.roots());
  EXPECT_TRUE(environment.is_gpu_present);
  EXPECT_THAT(environment.gpu_devices, ElementsAre("0000:65:00.0", "0000:66:00.0"));
  EXPECT_FALSE(environment.is_nvml_usable);
  EXPECT_THAT(environment.nvml_problem, HasSubstr("libabsent-nvml.so.1"));
}

TEST(Gpus, AreSeenByAnyNumberedDeviceFile) {
  FixtureTree tree;
  tree.add("/dev/nvidia3", "").add("/dev/nvidiactl", "").add("/dev/nvidia-uvm", "");
  EXPECT_THAT(gpus_of(tree.roots()).gpu_devices, ElementsAre("/dev/nvidia3"));
}

TEST(Gpus, AreNotSeenByControlFilesAlone) {
  FixtureTree tree;
  tree.add("/dev/nvidiactl", "").add("/dev/nvidia-uvm", "");
  EXPECT_THAT(gpus_of(tree.roots()).gpu_devices, IsEmpty());
}

TEST(Gpus, TakeTheDriverVersionFromProcWithoutLibrary) {
  FixtureTree tree;
  tree.add("/proc/driver/nvidia/version",
           "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.54.03  Tue Jun  6 22:20:39 UTC\n"
           "GCC version:  gcc version 12.2.0\n");
  EXPECT_EQ(gpus_of(tree.roots()).driver_version, "535.54.03");
}

TEST(DriverVersion, IsFoundInTextOfOpenModule) {
  EXPECT_EQ(driver_version_in("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04"
                              "  Release Build  (dvs-builder@x)  Thu\n"),
            "580.159.04");
}

TEST(DriverVersion, IsEmptyWithoutOne) {
  EXPECT_EQ(driver_version_in(""), "");
  EXPECT_EQ(driver_version_in("NVRM version: NVIDIA UNIX x86_64 Kernel Module\n"), "");
}

}  // namespace
}  // namespace assay::platform
