#include "base/files.h"

#include <cerrno>
#include <sys/stat.h>
#include <utility>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fault_points.h"
#include "base/text.h"

namespace assay {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

void make_file(const std::string& path, std::string_view text) {
  FileWriter writer(path, "config");
  writer.write(text);
  writer.close();
}

// errno of the FileError that `call` throws, 0 if it throws none.
template <class Call>
int error_of(const Call& call) {
  try {
    call();
  } catch (const FileError& error) {
    return error.error_number();
  }
  return 0;
}

TEST(FileError, NamesOperationPathAndReason) {
  EXPECT_STREQ(FileError("write", "runs/a/latest", ENOSPC).what(),
               "cannot write runs/a/latest: no space left on device");
  EXPECT_STREQ(FileError("read", "a\n\x1b[2J", EIO).what(),
               "cannot read a\\n\\x1b[2J: input/output error");
  EXPECT_STREQ(FileError("read", "a", 99999).what(), "cannot read a: error 99999");
}

TEST(Paths, AreJoinedAndTaken) {
  EXPECT_EQ(join_path("a", "b"), "a/b");
  EXPECT_EQ(join_path("a/", "b"), "a/b");
  EXPECT_EQ(join_path("", "b"), "b");
  EXPECT_EQ(join_path("a", "/b"), "/b");
  EXPECT_EQ(parent_path("a/b/"), "a");
  EXPECT_EQ(parent_path("a//b"), "a");
  EXPECT_EQ(parent_path("a"), ".");
  EXPECT_EQ(parent_path("/a"), "/");
  EXPECT_EQ(parent_path("/"), "/");
  EXPECT_EQ(file_name("a/b/"), "b");
  EXPECT_EQ(file_name("b"), "b");
}

TEST(ReadFile, GivesEveryByte) {
  const TemporaryFolder folder;
  for (const size_t count : {0U, 1U, 4095U, 4096U, 4097U, 100000U}) {
    const std::string path = join_path(folder.path(), cat("file-", count));
    std::string bytes(count, '\0');
    for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<char>(i % 251);
    make_file(path, bytes);
    EXPECT_EQ(read_file(path), bytes);
    EXPECT_EQ(file_bytes(path), count);
  }
}

TEST(ReadFile, ReadsFilesThatSayTheyAreEmpty) {
  EXPECT_THAT(read_file("/proc/self/stat"), HasSubstr(cat(getpid())));
}

TEST(ReadFile, RefusesWhatItCannotRead) {
  const TemporaryFolder folder;
  const std::string path = join_path(folder.path(), "file");
  make_file(path, "12345");
  EXPECT_EQ(error_of([&] { read_file(path, 4); }), EFBIG);
  EXPECT_EQ(read_file(path, 5), "12345");
  EXPECT_EQ(error_of([] { read_file("/dev/zero", 100000); }), EFBIG);
  EXPECT_EQ(error_of([&] { read_file(join_path(folder.path(), "missing")); }), ENOENT);
  EXPECT_EQ(error_of([&] { read_file(folder.path()); }), EISDIR);
  EXPECT_EQ(error_of([&] { file_bytes(join_path(path, "below")); }), ENOTDIR);
}

TEST(ListDirectory, SortsByBytes) {
  const TemporaryFolder folder;
  for (const char* name : {"b", "\xc3\xa9", "a", "B", ".hidden", "a b\nc"}) {
    make_file(join_path(folder.path(), name), "");
  }
  EXPECT_THAT(list_directory(folder.path()),
              ElementsAre(".hidden", "B", "a", "a b\nc", "b", "\xc3\xa9"));
  EXPECT_EQ(error_of([&] { list_directory(join_path(folder.path(), "a")); }), ENOTDIR);
}

TEST(CreateDirectories, MakesWhatIsMissing) {
  const TemporaryFolder folder;
  const std::string deep = join_path(folder.path(), "a/b//c/");
  create_directories(deep);
  create_directories(deep);
  EXPECT_TRUE(is_directory(deep));
}

TEST(CreateDirectories, SaysWhatIsInTheWay) {
  const TemporaryFolder folder;
  const std::string file = join_path(folder.path(), "file");
  make_file(file, "");
  EXPECT_EQ(error_of([&] { create_directories(file); }), ENOTDIR);
  EXPECT_EQ(error_of([&] { create_directories(join_path(file, "below")); }), ENOTDIR);
  const std::string long_name(300, 'x');
  EXPECT_EQ(error_of([&] { create_directories(join_path(folder.path(), long_name)); }),
            ENAMETOOLONG);
  ASSERT_EQ(symlink("nowhere", join_path(folder.path(), "dangling").c_str()), 0);
  EXPECT_EQ(error_of([&] { create_directories(join_path(folder.path(), "dangling")); }), ENOTDIR);
}

TEST(Predicates, FollowLinks) {
  const TemporaryFolder folder;
  const std::string file = join_path(folder.path(), "file");
  const std::string link = join_path(folder.path(), "link");
  make_file(file, "x");
  ASSERT_EQ(symlink("file", link.c_str()), 0);
  EXPECT_TRUE(is_regular_file(link));
  EXPECT_FALSE(is_directory(link));
  remove_file(file);
  EXPECT_FALSE(path_exists(link));
}

TEST(RemoveFile, RemovesTheLinkAndNotItsTarget) {
  const TemporaryFolder folder;
  const std::string file = join_path(folder.path(), "file");
  const std::string link = join_path(folder.path(), "link");
  make_file(file, "x");
  ASSERT_EQ(symlink("file", link.c_str()), 0);
  remove_file(link);
  remove_file(link);
  EXPECT_THAT(list_directory(folder.path()), ElementsAre("file"));
}

TEST(RemoveTree, LeavesWhatLinksPointTo) {
  const TemporaryFolder folder;
  const std::string outside = join_path(folder.path(), "outside");
  const std::string tree = join_path(folder.path(), "tree");
  create_directories(outside);
  make_file(join_path(outside, "precious"), "x");
  create_directories(join_path(tree, "a/b"));
  make_file(join_path(tree, "a/b/file"), "x");
  ASSERT_EQ(symlink("../outside", join_path(tree, "folder-link").c_str()), 0);
  ASSERT_EQ(symlink("../../outside/precious", join_path(tree, "a/file-link").c_str()), 0);
  ASSERT_EQ(symlink("nowhere", join_path(tree, "dangling").c_str()), 0);
  remove_tree(tree);
  EXPECT_THAT(list_directory(folder.path()), ElementsAre("outside"));
  EXPECT_EQ(read_file(join_path(outside, "precious")), "x");
}

TEST(RemoveTree, RemovesALinkToAFolderOnly) {
  const TemporaryFolder folder;
  const std::string outside = join_path(folder.path(), "outside");
  const std::string link = join_path(folder.path(), "link");
  create_directories(outside);
  make_file(join_path(outside, "precious"), "x");
  for (const std::string& spelling : {link, link + "/"}) {
    ASSERT_EQ(symlink("outside", link.c_str()), 0);
    remove_tree(spelling);
    EXPECT_THAT(list_directory(folder.path()), ElementsAre("outside"));
    EXPECT_THAT(list_directory(outside), ElementsAre("precious"));
  }
}

TEST(RemoveTree, AcceptsFilesAndWhatIsMissing) {
  const TemporaryFolder folder;
  const std::string file = join_path(folder.path(), "file");
  make_file(file, "x");
  remove_tree(file);
  remove_tree(file);
  EXPECT_THAT(list_directory(folder.path()), IsEmpty());
  EXPECT_THROW(remove_tree("/"), InternalError);
}

TEST(RenamePath, NamesBothPathsWhenItFails) {
  const TemporaryFolder folder;
  const std::string from = join_path(folder.path(), "from");
  const std::string to = join_path(folder.path(), "to");
  try {
    rename_path(from, to, "checkpoint.rename");
    FAIL() << "renamed a missing file";
  } catch (const FileError& error) {
    EXPECT_EQ(error.error_number(), ENOENT);
    EXPECT_THAT(error.what(), HasSubstr(cat(from, " to ", to)));
  }
}

TEST(RenamePath, CanBeFailedByName) {
  const TemporaryFolder folder;
  const std::string from = join_path(folder.path(), "from");
  const std::string to = join_path(folder.path(), "to");
  make_file(from, "x");
  arm_faults("checkpoint.rename=errno:EROFS;checkpoint.sync_dir=errno:EIO");
  EXPECT_EQ(error_of([&] { rename_path(from, to, "checkpoint.rename"); }), EROFS);
  EXPECT_EQ(error_of([&] { sync_directory(folder.path(), "checkpoint.sync_dir"); }), EIO);
  EXPECT_TRUE(path_exists(from));
  rename_path(from, to, "checkpoint.rename");
  sync_directory(folder.path(), "checkpoint.sync_dir");
  disarm_faults();
  EXPECT_THAT(list_directory(folder.path()), ElementsAre("to"));
}

TEST(DiskSpace, IsCountedForAFolder) {
  const TemporaryFolder folder;
  const DiskSpace space = disk_space(folder.path());
  EXPECT_GT(space.total_bytes, 0U);
  EXPECT_LE(space.free_bytes, space.total_bytes);
  EXPECT_LE(space.free_inodes, space.total_inodes);
  EXPECT_EQ(error_of([&] { disk_space(join_path(folder.path(), "missing")); }), ENOENT);
}

TEST(MappedFile, ShowsTheBytesAndMoves) {
  const TemporaryFolder folder;
  const std::string path = join_path(folder.path(), "file");
  make_file(path, "mapped");
  MappedFile first(path);
  const MappedFile second = std::move(first);
  ASSERT_EQ(second.size(), 6U);
  EXPECT_EQ(std::string(second.data(), second.data() + second.size()), "mapped");
}

TEST(MappedFile, MapsAnEmptyFileToNothing) {
  const TemporaryFolder folder;
  const std::string path = join_path(folder.path(), "empty");
  make_file(path, "");
  EXPECT_EQ(MappedFile(path).size(), 0U);
}

TEST(MappedFile, RefusesWhatIsNoFile) {
  const TemporaryFolder folder;
  EXPECT_EQ(error_of([&] { MappedFile map(folder.path()); }), EISDIR);
  EXPECT_EQ(error_of([] { MappedFile map("/dev/null"); }), ENODEV);
  EXPECT_EQ(error_of([&] { MappedFile map(join_path(folder.path(), "missing")); }), ENOENT);
}

TEST(TemporaryFolder, IsGoneAfterwards) {
  std::string path;
  {
    const TemporaryFolder folder("marked");
    path = folder.path();
    EXPECT_THAT(path, HasSubstr("marked-"));
    create_directories(join_path(path, "a/b"));
  }
  EXPECT_FALSE(path_exists(path));
}

}  // namespace
}  // namespace assay
