#include "base/log.h"

#include <array>
#include <cstdio>
#include <sys/ioctl.h>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"

namespace assay {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;
using testing::Not;

// Points stderr at a descriptor for its lifetime.
class RedirectedStderr {
 public:
  explicit RedirectedStderr(int target) : saved_(dup(STDERR_FILENO)) {
    std::fflush(stderr);
    dup2(target, STDERR_FILENO);
  }
  ~RedirectedStderr() {
    dup2(saved_, STDERR_FILENO);
    close(saved_);
  }
  RedirectedStderr(const RedirectedStderr&) = delete;
  RedirectedStderr& operator=(const RedirectedStderr&) = delete;

 private:
  int saved_;
};

// What `say` writes to stderr when that is a file.
template <class Say>
std::string spoken(const Say& say) {
  const TemporaryFolder folder;
  const std::string path = join_path(folder.path(), "stderr");
  const int file = open(path.c_str(), O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
  {
    const RedirectedStderr redirected(file);
    say();
  }
  close(file);
  return read_file(path);
}

// What `say` writes to stderr when that is a terminal of the given width.
template <class Say>
std::string shown(unsigned short width, const Say& say) {
  const int screen = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  EXPECT_EQ(grantpt(screen), 0);
  EXPECT_EQ(unlockpt(screen), 0);
  const int terminal = open(ptsname(screen), O_RDWR | O_NOCTTY | O_CLOEXEC);
  winsize size{};
  size.ws_col = width;
  size.ws_row = 24;
  EXPECT_EQ(ioctl(terminal, TIOCSWINSZ, &size), 0);
  {
    const RedirectedStderr redirected(terminal);
    say();
  }
  std::string text;
  pollfd waiting{screen, POLLIN, 0};
  while (poll(&waiting, 1, 0) == 1 && (waiting.revents & POLLIN) != 0) {
    std::array<char, 4096> piece;
    const ssize_t count = read(screen, piece.data(), piece.size());
    if (count <= 0) break;
    text.append(piece.data(), static_cast<size_t>(count));
  }
  close(terminal);
  close(screen);
  return text;
}

TEST(Logger, WritesStampLevelAndRank) {
  EXPECT_THAT(spoken([] {
                Logger logger({.rank = 3});
                logger.info("hello");
              }),
              MatchesRegex("[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z I "
                           "\\[rank 3\\] hello\n"));
}

TEST(Logger, EscapesControlCharacters) {
  EXPECT_THAT(spoken([] {
                Logger logger({});
                logger.warning("a\nE [rank 0] forged\x1b[2J");
              }),
              HasSubstr(" W [rank 0] a\\nE [rank 0] forged\\x1b[2J\n"));
}

TEST(Logger, DropsLinesBelowItsLevel) {
  const std::string text = spoken([] {
    Logger logger({.level = LogLevel::kWarning});
    logger.debug("one");
    logger.info("two");
    logger.warning("three");
    logger.error("four");
  });
  EXPECT_THAT(text, AllOf(Not(HasSubstr("one")), Not(HasSubstr("two")),
                          HasSubstr("W [rank 0] three"), HasSubstr("E [rank 0] four")));
}

TEST(Logger, KeepsQuietRanksToTheirFile) {
  const TemporaryFolder folder;
  const std::string path = join_path(folder.path(), "log-rank1.txt");
  const std::string text = spoken([&] {
    Logger logger({.rank = 1, .is_terminal_quiet = true, .file = path});
    logger.info("only in the file");
    logger.warning("everywhere");
  });
  EXPECT_THAT(text, AllOf(Not(HasSubstr("only")), HasSubstr("everywhere")));
  EXPECT_THAT(read_file(path), AllOf(HasSubstr("only in the file"), HasSubstr("everywhere")));
}

TEST(Logger, AppendsToAnExistingFile) {
  const TemporaryFolder folder;
  const std::string path = join_path(folder.path(), "log-rank0.txt");
  spoken([&] {
    for (const char* word : {"first", "second"}) {
      Logger logger({});
      logger.open_file(path);
      logger.info(word);
    }
  });
  EXPECT_THAT(read_file(path), ContainsRegex("first\n.*second\n"));
}

TEST(Logger, TellsOnceThatItsFileCannotBeWritten) {
  const std::string text = spoken([] {
    Logger logger({.file = "/dev/full"});
    logger.info("one");
    logger.info("two");
  });
  const std::string complaint =
      "the log file is given up: cannot write /dev/full: no space left on device";
  const size_t first = text.find(complaint);
  EXPECT_NE(first, std::string::npos);
  EXPECT_EQ(text.find(complaint, first + 1), std::string::npos);
  EXPECT_THAT(text, AllOf(HasSubstr("one"), HasSubstr("two")));
}

TEST(Logger, ThrowsWhenItsFileCannotBeOpened) {
  Logger logger({});
  EXPECT_THROW(logger.open_file("/proc/no/such/folder"), FileError);
}

TEST(Logger, KeepsLinesOfManyThreadsWhole) {
  const TemporaryFolder folder;
  const std::string path = join_path(folder.path(), "log-rank0.txt");
  spoken([&] {
    Logger logger({.file = path});
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 4; ++thread) {
      threads.emplace_back([&logger] {
        for (int i = 0; i < 100; ++i) logger.info("whole line");
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
  std::vector<std::string> lines = split(read_file(path), '\n');
  ASSERT_EQ(lines.size(), 401U);
  lines.pop_back();
  for (const std::string& line : lines)
    ASSERT_THAT(line, ContainsRegex("Z I .rank 0. whole line$"));
}

TEST(Logger, DropsProgressWhereThereIsNoTerminal) {
  const TemporaryFolder folder;
  const std::string path = join_path(folder.path(), "log-rank0.txt");
  EXPECT_THAT(spoken([&] {
                Logger logger({.file = path});
                logger.progress("step 3 of 30");
                EXPECT_FALSE(logger.is_terminal());
                EXPECT_FALSE(logger.has_color());
              }),
              IsEmpty());
  EXPECT_THAT(read_file(path), IsEmpty());
}

TEST(Logger, RewritesTheProgressLineInPlace) {
  const std::string text = shown(40, [] {
    Logger logger({});
    logger.progress("step 1");
    logger.progress("step 2\nforged");
    logger.info("saved");
    logger.progress("step 3");
    logger.progress("");
  });
  EXPECT_THAT(text, MatchesRegex("\r\x1b\\[Kstep 1\r\x1b\\[Kstep 2\\\\nforged\r\x1b\\[K.*saved\r\n"
                                 "\r\x1b\\[Kstep 3\r\x1b\\[K"));
}

TEST(Logger, CutsProgressToTheWidthOfTheTerminal) {
  const std::string text = shown(8, [] {
    Logger logger({});
    logger.progress("\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9");
  });
  EXPECT_THAT(text, HasSubstr("K\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\r"));
}

TEST(Logger, ColorsTerminalLinesUnlessForbidden) {
  const auto warn = [] {
    Logger logger({});
    logger.warning("look");
  };
  unsetenv("NO_COLOR");
  EXPECT_THAT(shown(80, warn), HasSubstr("\x1b[33m"));
  setenv("NO_COLOR", "1", 1);
  EXPECT_THAT(shown(80, warn), AllOf(HasSubstr("look"), Not(HasSubstr("\x1b[33m"))));
  unsetenv("NO_COLOR");
}

TEST(LogLevelFromEnvironment, TakesTheFourNamesOnly) {
  unsetenv("ASSAY_LOG_LEVEL");
  EXPECT_EQ(log_level_from_environment(), LogLevel::kInfo);
  setenv("ASSAY_LOG_LEVEL", "debug", 1);
  EXPECT_EQ(log_level_from_environment(), LogLevel::kDebug);
  setenv("ASSAY_LOG_LEVEL", "error", 1);
  EXPECT_EQ(log_level_from_environment(), LogLevel::kError);
  setenv("ASSAY_LOG_LEVEL", "waring", 1);
  try {
    log_level_from_environment();
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(),
                AllOf(HasSubstr("\"waring\""), HasSubstr("did you mean \"warning\"?")));
  }
  unsetenv("ASSAY_LOG_LEVEL");
}

}  // namespace
}  // namespace assay
