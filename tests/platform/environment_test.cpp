#include "platform/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "platform/record.h"
#include "tests/platform/fixture_tree.h"

namespace assay::platform {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;

TEST(Environment, IsRecordedFromFixture) {
  FixtureTree tree;
  add_unified_cgroup(tree, "/");
  tree.add("/etc/os-release", "ID=debian\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n");
  tree.add("/proc/cpuinfo", "processor : 0\nmodel name : X\n");
  tree.add("/proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 900 kB\n");
  tree.add("/sys/fs/cgroup/cpu.max", "100000 100000\n");
  tree.add_folder("/out");
  const Environment environment = record_environment_of(tree.roots(4), {"/out"});
  EXPECT_EQ(environment.os, "Debian GNU/Linux 12 (bookworm)");
  EXPECT_THAT(environment.recorded_utc, MatchesRegex("[0-9-]+T[0-9:.]+Z"));
  EXPECT_THAT(environment.kernel, HasSubstr("Linux"));
  EXPECT_FALSE(environment.is_container);
  EXPECT_EQ(environment.cpu.available_cpus, 1);
  EXPECT_EQ(environment.memory.total_bytes, 1024000U);
  ASSERT_EQ(environment.mounts.size(), 1U);
  EXPECT_EQ(environment.mounts[0].device, "/dev/vda");
  EXPECT_FALSE(environment.is_gpu_present);
}

TEST(Environment, SeesContainersByTheirMarks) {
  FixtureTree docker;
  docker.add("/.dockerenv", "");
  EXPECT_TRUE(record_environment_of(docker.roots(), {}).is_container);
  FixtureTree pod;
  pod.add("/proc/self/cgroup", "0::/kubepods.slice/pod1\n");
  EXPECT_TRUE(record_environment_of(pod.roots(), {}).is_container);
  FixtureTree overlay;
  overlay.add("/proc/self/mountinfo", "1 0 0:9 / / rw - overlay overlay rw\n");
  EXPECT_TRUE(record_environment_of(overlay.roots(), {}).is_container);
}

TEST(Environment, IsRecordedOnThisMachine) {
  const Environment environment = record_environment({"."});
  EXPECT_FALSE(environment.host_name.empty());
  EXPECT_GE(environment.cpu.logical_cpus, environment.cpu.available_cpus);
  EXPECT_EQ(environment.cpu.available_cpus, available_cpus());
  EXPECT_GT(environment.memory.total_bytes, 0U);
  EXPECT_GE(environment.memory.total_bytes, environment.memory.available_bytes);
  EXPECT_GT(environment.mounts.at(0).total_bytes, 0U);
}

TEST(EnvironmentJson, HasAllGroupsAndValues) {
  Environment environment;
  environment.host_name = "box";
  environment.cpu.features = {"avx2"};
  environment.memory.memlock_limit_bytes = UINT64_MAX;
  MountFacts mount;
  mount.path = "/data";
  mount.is_root_disk = true;
  environment.mounts = {mount};
  environment.gpu_devices = {"/dev/nvidia0"};
  GpuFacts gpu;
  gpu.power_watts = 76.5;
  gpu.other_process_ids = {7, 8};
  environment.gpus = {gpu};
  const nlohmann::json json = nlohmann::json::parse(to_json(environment));
  EXPECT_EQ(json.at("host_name"), "box");
  EXPECT_EQ(json.at("cpu").at("features").at(0), "avx2");
  EXPECT_EQ(json.at("memory").at("memlock_limit_bytes"), UINT64_MAX);
  EXPECT_EQ(json.at("mounts").at(0).at("path"), "/data");
  EXPECT_TRUE(json.at("mounts").at(0).at("is_root_disk"));
  EXPECT_EQ(json.at("gpu_devices").at(0), "/dev/nvidia0");
  EXPECT_EQ(json.at("gpus").at(0).at("power_watts"), 76.5);
  EXPECT_EQ(json.at("gpus").at(0).at("other_process_ids").size(), 2U);
  EXPECT_EQ(json.at("gpus").at(0).at("numa_node"), -1);
}

TEST(EnvironmentJson, HasArraysEvenWhenEmpty) {
  const nlohmann::json json = nlohmann::json::parse(to_json({}));
  EXPECT_TRUE(json.at("gpus").is_array());
  EXPECT_TRUE(json.at("mounts").is_array());
  EXPECT_TRUE(json.at("gpu_devices").is_array());
}

TEST(EnvironmentJson, TakesPathsThatAreNoUtf8) {
  Environment environment;
  MountFacts mount;
  mount.path = "/d\xff";
  environment.mounts = {mount};
  const nlohmann::json json = nlohmann::json::parse(to_json(environment));
  EXPECT_EQ(json.at("mounts").at(0).at("path"), "/d\xef\xbf\xbd");
}

}  // namespace
}  // namespace assay::platform
