#include <array>
#include <cerrno>
#include <functional>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fault_points.h"
#include "base/file_calls.h"
#include "base/files.h"
#include "base/text.h"

namespace assay {
namespace {

using testing::AnyOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;

class ArmedFaults {
 public:
  explicit ArmedFaults(std::string_view specification) { arm_faults(specification); }
  ~ArmedFaults() { disarm_faults(); }
  ArmedFaults(const ArmedFaults&) = delete;
  ArmedFaults& operator=(const ArmedFaults&) = delete;
};

int error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const FileError& error) {
    return error.error_number();
  }
  return 0;
}

// Ends a forked child without the parent's exit handlers: 0 if `call` returned.
[[noreturn]] void finish_child(const std::function<void()>& call) {
  try {
    call();
  } catch (const FileError& error) {
    _exit(error.error_number() == EFBIG ? 27 : 1);
  }
  _exit(0);
}

int wait_status_of(const std::function<void()>& call) {
  const pid_t child = fork();
  if (child == 0) finish_child(call);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return status;
}

std::string long_text() {
  std::string text;
  for (int i = 0; i < 20000; ++i) text += cat(i, "\n");
  return text;
}

constexpr std::array<std::string_view, 6> kDurableSteps = {"open",  "write",  "fsync",
                                                           "close", "rename", "sync_parent"};

TEST(FileWriter, WritesPiecesInOrder) {
  const TemporaryFolder folder;
  const std::string path = join_path(folder.path(), "file");
  FileWriter writer(path, "config");
  writer.write("one ");
  writer.write("");
  writer.write("two");
  writer.sync();
  writer.close();
  EXPECT_EQ(read_file(path), "one two");
}

TEST(FileWriter, ReplacesItsStartAndGoesOnAtTheEnd) {
  const TemporaryFolder folder;
  const std::string path = join_path(folder.path(), "file");
  FileWriter writer(path, "config");
  writer.write("----body");
  writer.overwrite_start("head");
  writer.write("-end");
  EXPECT_THROW(writer.overwrite_start(std::string(13, 'x')), InternalError);
  writer.close();
  EXPECT_EQ(read_file(path), "headbody-end");
}

TEST(FileWriter, NeverOverwrites) {
  const TemporaryFolder folder;
  const std::string path = join_path(folder.path(), "file");
  write_file_durably(path, "old", "config");
  EXPECT_EQ(error_of([&] { FileWriter writer(path, "config"); }), EEXIST);
  const std::string link = join_path(folder.path(), "link");
  ASSERT_EQ(symlink("elsewhere", link.c_str()), 0);
  EXPECT_EQ(error_of([&] { FileWriter writer(link, "config"); }), EEXIST);
  EXPECT_EQ(read_file(path), "old");
  EXPECT_FALSE(path_exists(join_path(folder.path(), "elsewhere")));
}

TEST(FileWriter, RefusesUseAfterClose) {
  const TemporaryFolder folder;
  FileWriter writer(join_path(folder.path(), "file"), "config");
  writer.close();
  EXPECT_THROW(writer.write("x"), InternalError);
  EXPECT_THROW(writer.sync(), InternalError);
  EXPECT_THROW(writer.close(), InternalError);
}

TEST(FileWriter, FailsWithTheInjectedReasonAtEveryStep) {
  for (const char* reason : {"ENOSPC", "EIO", "EROFS", "EDQUOT"}) {
    for (const char* step : {"open", "write", "fsync", "close"}) {
      const TemporaryFolder folder;
      const std::string path = join_path(folder.path(), "file");
      const ArmedFaults faults(cat("metrics.", step, "=errno:", reason));
      SCOPED_TRACE(cat(step, " ", reason));
      EXPECT_NE(error_of([&] {
                  FileWriter writer(path, "metrics");
                  writer.write("text");
                  writer.sync();
                  writer.close();
                }),
                0);
    }
  }
}

TEST(FileWriter, FinishesShortWrites) {
  const TemporaryFolder folder;
  const std::string path = join_path(folder.path(), "file");
  const ArmedFaults faults("metrics.write:1+=short");
  FileWriter writer(path, "metrics");
  writer.write(long_text());
  writer.close();
  EXPECT_EQ(read_file(path), long_text());
}

TEST(FileWriter, RepeatsWhatASignalInterrupted) {
  const TemporaryFolder folder;
  const std::string path = join_path(folder.path(), "file");
  const ArmedFaults faults(
      "metrics.open=errno:EINTR;metrics.write:1=errno:EINTR;metrics.write:2=errno:EINTR;"
      "metrics.fsync=errno:EINTR;metrics.close=errno:EINTR");
  FileWriter writer(path, "metrics");
  writer.write("text");
  writer.sync();
  writer.close();
  EXPECT_EQ(read_file(path), "text");
}

TEST(FileWriter, GivesUpOnEndlessInterruption) {
  const TemporaryFolder folder;
  const ArmedFaults faults("metrics.write:1+=errno:EINTR");
  FileWriter writer(join_path(folder.path(), "file"), "metrics");
  EXPECT_EQ(error_of([&] { writer.write("text"); }), EINTR);
}

TEST(WriteAll, FillsAPipeThatTakesItPieceByPiece) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
  const std::string text = long_text() + long_text();  // more than the pipe's 64 KiB
  std::string received;
  std::thread reader([&] {
    std::array<char, 777> piece;
    ssize_t count = 0;
    while ((count = read(ends[0], piece.data(), piece.size())) > 0) {
      received.append(piece.data(), static_cast<size_t>(count));
    }
  });
  write_all(ends[1], text, "pipe", "");
  close(ends[1]);
  reader.join();
  close(ends[0]);
  EXPECT_EQ(received, text);
}

TEST(WriteFileDurably, ReplacesTheContent) {
  const TemporaryFolder folder;
  const std::string path = join_path(folder.path(), "file");
  write_file_durably(path, "old", "config");
  write_file_durably(path, "new", "config");
  EXPECT_EQ(read_file(path), "new");
  EXPECT_THAT(list_directory(folder.path()), ElementsAre("file"));
}

TEST(WriteFileDurably, TakesTheLongestNameOfTheSystem) {
  const TemporaryFolder folder;
  const std::string name(255, 'n');
  write_file_durably(join_path(folder.path(), name), "x", "config");
  EXPECT_THAT(list_directory(folder.path()), ElementsAre(name));
}

TEST(WriteFileDurably, LeavesTheOldContentAndNoLitterOnFailure) {
  for (const std::string_view step : kDurableSteps) {
    for (const char* action : {"errno:ENOSPC", "errno:EIO", "throw"}) {
      const TemporaryFolder folder;
      const std::string path = join_path(folder.path(), "latest");
      write_file_durably(path, "old", "config");
      const ArmedFaults faults(cat("config.", step, "=", action));
      SCOPED_TRACE(cat(step, " ", action));
      EXPECT_ANY_THROW(write_file_durably(path, "new", "config"));
      EXPECT_THAT(list_directory(folder.path()), ElementsAre("latest"));
      // The rename was made before its folder was synced: both contents are whole, new is named.
      EXPECT_EQ(read_file(path), step == "sync_parent" ? "new" : "old");
    }
  }
}

TEST(WriteFileDurably, CreatesNothingWhenItFailsForANewFile) {
  for (const std::string_view step : {"open", "write", "fsync", "close", "rename"}) {
    const TemporaryFolder folder;
    const ArmedFaults faults(cat("config.", step, "=errno:ENOSPC"));
    SCOPED_TRACE(step);
    EXPECT_EQ(
        error_of([&] { write_file_durably(join_path(folder.path(), "latest"), "new", "config"); }),
        ENOSPC);
    EXPECT_THAT(list_directory(folder.path()), IsEmpty());
  }
}

TEST(WriteFileDurably, HasOldOrNewContentAfterAKillAtAnyStep) {
  for (const std::string_view step : kDurableSteps) {
    const TemporaryFolder folder;
    const std::string path = join_path(folder.path(), "latest");
    write_file_durably(path, "old", "config");
    const int status = wait_status_of([&] {
      arm_faults(cat("config.", step, "=kill"));
      write_file_durably(path, "new", "config");
    });
    SCOPED_TRACE(step);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    EXPECT_EQ(read_file(path), step == "sync_parent" ? "new" : "old");
    for (const std::string& name : list_directory(folder.path())) {
      EXPECT_THAT(name, AnyOf("latest", MatchesRegex("\\.latest\\.tmp-[0-9a-f]{8}")));
    }
  }
}

TEST(WriteFileDurably, KeepsTheOldContentAtTheLimitOfFileSize) {
  const TemporaryFolder folder;
  const std::string path = join_path(folder.path(), "latest");
  write_file_durably(path, "old", "config");
  const int status = wait_status_of([&] {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{5000, 5000};
    setrlimit(RLIMIT_FSIZE, &limit);
    write_file_durably(path, long_text(), "config");
  });
  EXPECT_EQ(WEXITSTATUS(status), 27);  // EFBIG, see finish_child
  EXPECT_EQ(read_file(path), "old");
  EXPECT_THAT(list_directory(folder.path()), ElementsAre("latest"));
}

TEST(AppendFile, GrowsAnExistingFile) {
  const TemporaryFolder folder;
  const std::string path = join_path(folder.path(), "log");
  {
    AppendFile file(path, "log");
    file.append("one\n");
  }
  AppendFile file(path, "log");
  file.append("two\n");
  file.sync();
  file.close();
  EXPECT_EQ(read_file(path), "one\ntwo\n");
  EXPECT_THROW(file.append("three\n"), InternalError);
}

TEST(AppendFile, TellsThatTheDiskIsFull) {
  AppendFile file("/dev/full", "log");
  try {
    file.append("line\n");
    FAIL() << "/dev/full took a line";
  } catch (const FileError& error) {
    EXPECT_STREQ(error.what(), "cannot write /dev/full: no space left on device");
  }
}

TEST(AppendFile, CutsATornLineOff) {
  const TemporaryFolder folder;
  const std::string path = join_path(folder.path(), "metrics.jsonl");
  AppendFile file(path, "metrics");
  file.append("one\n");
  {
    // Half of the line is taken, then the disk is full.
    const ArmedFaults faults("metrics.write:1=short;metrics.write:2=errno:ENOSPC");
    EXPECT_EQ(error_of([&] { file.append("a long second line\n"); }), ENOSPC);
  }
  EXPECT_EQ(read_file(path), "one\n");
  file.append("three\n");
  EXPECT_EQ(read_file(path), "one\nthree\n");
}

TEST(AppendFile, FailsWithTheInjectedReasonAtEveryStep) {
  for (const char* step : {"open", "write", "fsync", "close"}) {
    const TemporaryFolder folder;
    const ArmedFaults faults(cat("metrics.", step, "=errno:EIO"));
    SCOPED_TRACE(step);
    EXPECT_EQ(error_of([&] {
                AppendFile file(join_path(folder.path(), "file"), "metrics");
                file.append("x\n");
                file.sync();
                file.close();
              }),
              EIO);
  }
}

}  // namespace
}  // namespace assay
