#include "platform/mounts.h"

#include <gtest/gtest.h>

#include "tests/platform/fixture_tree.h"

namespace assay::platform {
namespace {

constexpr const char* kMountinfo =
    "22 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard\n"
    "23 22 254:16 / /data rw,relatime shared:7 master:2 - xfs /dev/vdb rw\n"
    "24 23 254:32 / /data/old ro,relatime - ext4 /dev/vdc rw\n"
    "25 22 254:0 /home/me /bind rw - ext4 /dev/vda rw\n"
    "26 22 0:50 / /with\\040blank rw - nfs server:/share rw,vers=4\n";

MountFacts mount_of_path(FixtureTree& tree, const std::string& path) {
  return read_mount(tree.roots(), parse_mountinfo(kMountinfo), path);
}

TEST(Mountinfo, IsParsedWithAndWithoutOptionalFields) {
  const std::vector<MountEntry> mounts = parse_mountinfo(kMountinfo);
  ASSERT_EQ(mounts.size(), 5U);
  EXPECT_EQ(mounts[1].device_number, "254:16");
  EXPECT_EQ(mounts[1].mount_point, "/data");
  EXPECT_EQ(mounts[1].file_system, "xfs");
  EXPECT_EQ(mounts[1].source, "/dev/vdb");
  EXPECT_EQ(mounts[1].super_options, "rw");
  EXPECT_EQ(mounts[3].root, "/home/me");
  EXPECT_EQ(mounts[4].mount_point, "/with blank");
}

TEST(Mountinfo, LeavesOutBrokenLines) {
  EXPECT_TRUE(parse_mountinfo("").empty());
  EXPECT_TRUE(parse_mountinfo("22 1 254:0 / / rw\n- - -\n1 2 3 4 5 6 -\n").empty());
}

TEST(MountFacts, BelongToTheLongestMountPoint) {
  FixtureTree tree;
  tree.add_folder("/data/sets").add_folder("/database");
  EXPECT_EQ(mount_of_path(tree, "/data/sets").device, "/dev/vdb");
  EXPECT_FALSE(mount_of_path(tree, "/data/sets").is_root_disk);
  EXPECT_EQ(mount_of_path(tree, "/database").device, "/dev/vda");
  EXPECT_TRUE(mount_of_path(tree, "/database").is_root_disk);
}

TEST(MountFacts, SeeTheRootDiskBehindBindMount) {
  FixtureTree tree;
  tree.add_folder("/bind");
  const MountFacts facts = mount_of_path(tree, "/bind");
  EXPECT_EQ(facts.mount_point, "/bind");
  EXPECT_TRUE(facts.is_root_disk);
}

TEST(MountFacts, SayReadOnly) {
  FixtureTree tree;
  tree.add_folder("/data/old");
  EXPECT_TRUE(mount_of_path(tree, "/data/old").is_read_only);
  EXPECT_FALSE(mount_of_path(tree, "/data").is_read_only);
}

TEST(MountFacts, AnswerForTheParentOfWhatIsNotThereYet) {
  FixtureTree tree;
  tree.add_folder("/data");
  const MountFacts facts = mount_of_path(tree, "/data/runs/new");
  EXPECT_EQ(facts.path, "/data/runs/new");
  EXPECT_EQ(facts.mount_point, "/data");
  EXPECT_GT(facts.total_bytes, 0U);
}

TEST(MountFacts, AreEmptyWithoutMountTable) {
  FixtureTree tree;
  const MountFacts facts = read_mount(tree.roots(), {}, "/");
  EXPECT_EQ(facts.mount_point, "");
  EXPECT_FALSE(facts.is_root_disk);
}

TEST(MountFacts, FollowRelativePathsOnThisMachine) {
  const MountFacts facts = read_mount(Roots{}, read_mountinfo(Roots{}), ".");
  EXPECT_EQ(facts.path, ".");
  EXPECT_FALSE(facts.mount_point.empty());
  EXPECT_GT(facts.total_bytes, 0U);
}

}  // namespace
}  // namespace assay::platform
