#include <array>
#include <memory>
#include <sys/wait.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include "base/files.h"
#include "base/text.h"

namespace assay {
namespace {

using testing::IsNull;
using testing::MatchesRegex;
using testing::NotNull;

// A child process that holds the lock until it is killed.
class LockingProcess {
 public:
  explicit LockingProcess(const std::string& path) {
    std::array<int, 2> ready{};
    EXPECT_EQ(pipe(ready.data()), 0);
    pid_ = fork();
    if (pid_ == 0) {
      const std::unique_ptr<FolderLock> lock = FolderLock::try_lock(path, nullptr);
      const char answer = lock == nullptr ? 'n' : 'y';
      if (write(ready[1], &answer, 1) != 1) _exit(1);
      while (true) pause();
    }
    char answer = 0;
    EXPECT_EQ(read(ready[0], &answer, 1), 1);
    EXPECT_EQ(answer, 'y');
    close(ready[0]);
    close(ready[1]);
  }
  ~LockingProcess() { end(); }
  LockingProcess(const LockingProcess&) = delete;
  LockingProcess& operator=(const LockingProcess&) = delete;
  pid_t pid() const { return pid_; }
  void end() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

 private:
  pid_t pid_ = 0;
};

TEST(FolderLock, NamesTheProcessThatHoldsIt) {
  const TemporaryFolder folder;
  const std::string path = join_path(folder.path(), ".lock");
  const LockingProcess other(path);
  std::string holder;
  EXPECT_THAT(FolderLock::try_lock(path, &holder), IsNull());
  EXPECT_THAT(holder, MatchesRegex(cat("process ", other.pid(), " on host .+")));
  EXPECT_THAT(FolderLock::try_lock(path, nullptr), IsNull());
}

TEST(FolderLock, IsFreeAfterItsOwnerWasKilled) {
  const TemporaryFolder folder;
  const std::string path = join_path(folder.path(), ".lock");
  LockingProcess other(path);
  other.end();
  EXPECT_THAT(FolderLock::try_lock(path, nullptr), NotNull());
  EXPECT_THAT(read_file(path), MatchesRegex(cat(getpid(), " .+\n")));
}

TEST(FolderLock, IsFreeAfterDestruction) {
  const TemporaryFolder folder;
  const std::string path = join_path(folder.path(), ".lock");
  FolderLock::try_lock(path, nullptr).reset();
  EXPECT_THAT(FolderLock::try_lock(path, nullptr), NotNull());
  EXPECT_TRUE(path_exists(path));
}

TEST(FolderLock, SurvivesForeignContent) {
  const TemporaryFolder folder;
  const std::string path = join_path(folder.path(), ".lock");
  const std::unique_ptr<FolderLock> lock = FolderLock::try_lock(path, nullptr);
  ASSERT_EQ(truncate(path.c_str(), 0), 0);
  std::string holder;
  EXPECT_THAT(FolderLock::try_lock(path, &holder), IsNull());
  EXPECT_EQ(holder, "another process");
}

TEST(FolderLock, TellsWhyItCannotBeMade) {
  const TemporaryFolder folder;
  EXPECT_THROW(FolderLock::try_lock(join_path(folder.path(), "missing/.lock"), nullptr), FileError);
}

TEST(FolderLock, DoesNotFollowALink) {
  const TemporaryFolder folder;
  const std::string path = join_path(folder.path(), ".lock");
  ASSERT_EQ(symlink("victim", path.c_str()), 0);
  EXPECT_THROW(FolderLock::try_lock(path, nullptr), FileError);
  EXPECT_FALSE(path_exists(join_path(folder.path(), "victim")));
}

}  // namespace
}  // namespace assay
