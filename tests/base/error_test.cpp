#include "base/error.h"

#include <exception>

#include <gtest/gtest.h>

namespace assay {
namespace {

// Runs `fail`, and throws an exception with the given context around what it threw.
template <class Outer, class Fail>
std::exception_ptr nested(const Outer& outer, const Fail& fail) {
  try {
    try {
      fail();
    } catch (...) {
      std::throw_with_nested(outer);
    }
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

template <class Look>
void look_at(const std::exception_ptr& pointer, const Look& look) {
  try {
    std::rethrow_exception(pointer);
  } catch (const std::exception& error) {
    look(error);
  }
}

TEST(DescribeException, TellsTheOutermostContextFirst) {
  const auto pointer = nested(std::runtime_error("while resuming"), [] {
    std::rethrow_exception(
        nested(std::runtime_error("while reading"), [] { throw DataError("file is\nbroken\n"); }));
  });
  look_at(pointer, [](const std::exception& error) {
    EXPECT_EQ(describe_exception(error), "while resuming: while reading: file is | broken");
  });
}

TEST(DescribeException, NamesWhatIsNoStandardException) {
  const auto pointer = nested(std::runtime_error("outer"), [] { throw 7; });
  look_at(pointer, [](const std::exception& error) {
    EXPECT_EQ(describe_exception(error), "outer: unknown exception");
  });
}

TEST(ExitCodeOf, TakesTheInnermostOwnError) {
  const auto pointer = nested(CheckpointError("outer"), [] { throw DataError("inner"); });
  look_at(pointer,
          [](const std::exception& error) { EXPECT_EQ(exit_code_of(error), ExitCode::kData); });
}

TEST(ExitCodeOf, FallsBackOnTheOuterError) {
  const auto foreign = nested(LaunchError("outer"), [] { throw std::runtime_error("inner"); });
  look_at(foreign,
          [](const std::exception& error) { EXPECT_EQ(exit_code_of(error), ExitCode::kLaunch); });
  const auto number = nested(LaunchError("outer"), [] { throw 7; });
  look_at(number,
          [](const std::exception& error) { EXPECT_EQ(exit_code_of(error), ExitCode::kLaunch); });
}

TEST(ExitCodeOf, IsInternalForForeignErrors) {
  EXPECT_EQ(exit_code_of(std::runtime_error("x")), ExitCode::kInternal);
}

TEST(ExitCodeOf, FollowsTheContractForEveryType) {
  EXPECT_EQ(static_cast<int>(exit_code_of(InternalError("x"))), 1);
  EXPECT_EQ(static_cast<int>(exit_code_of(ConfigError("x"))), 2);
  EXPECT_EQ(static_cast<int>(exit_code_of(DataError("x"))), 3);
  EXPECT_EQ(static_cast<int>(exit_code_of(CheckpointError("x"))), 4);
  EXPECT_EQ(static_cast<int>(exit_code_of(LaunchError("x"))), 5);
  EXPECT_EQ(static_cast<int>(exit_code_of(Error(ExitCode::kCheckFailed, "x"))), 6);
  EXPECT_EQ(static_cast<int>(exit_code_of(DivergedError("x"))), 7);
  EXPECT_EQ(static_cast<int>(exit_code_of(CouldNotRunError("x"))), 8);
}

}  // namespace
}  // namespace assay
