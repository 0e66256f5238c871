#include "base/clock.h"

#include <cstdlib>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <time.h>

namespace assay {
namespace {

using testing::MatchesRegex;

TEST(MonotonicSeconds, NeverGoesBack) {
  double last = monotonic_seconds();
  for (int i = 0; i < 1000; ++i) {
    const double now = monotonic_seconds();
    ASSERT_GE(now, last);
    last = now;
  }
}

TEST(ProcessAge, IsBetweenZeroAndTheUptime) {
  timespec uptime{};
  ASSERT_EQ(clock_gettime(CLOCK_BOOTTIME, &uptime), 0);
  const double age = process_age_seconds();
  EXPECT_GE(age, 0);
  EXPECT_LE(age, static_cast<double>(uptime.tv_sec) + 2);
}

TEST(ProcessAge, GrowsLikeTheMonotonicClock) {
  const double age = process_age_seconds();
  const double start = monotonic_seconds();
  const double later_age = process_age_seconds();
  const double passed = monotonic_seconds() - start;
  // Both readings lie inside the passed time, plus the few calls between the first two lines.
  EXPECT_GE(later_age, age);
  EXPECT_LE(later_age - age, passed + 1.0);
}

TEST(UtcTimestamp, HasTheDocumentedForm) {
  EXPECT_THAT(utc_timestamp(), MatchesRegex("[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}"
                                            "\\.[0-9]{3}Z"));
  EXPECT_THAT(utc_compact(), MatchesRegex("[0-9]{8}-[0-9]{6}"));
}

TEST(UtcTimestamp, DoesNotFollowTheTimeZone) {
  const char* set = std::getenv("TZ");
  const std::string before = set == nullptr ? "" : set;
  setenv("TZ", "Pacific/Kiritimati", 1);  // 14 hours ahead
  tzset();
  const std::string there = utc_timestamp();
  setenv("TZ", "UTC", 1);
  tzset();
  const std::string here = utc_timestamp();
  if (set == nullptr) {
    unsetenv("TZ");
  } else {
    setenv("TZ", before.c_str(), 1);
  }
  tzset();
  EXPECT_LE(there, here);
  // The hour is the same, unless an hour (or a day) began between the two readings.
  EXPECT_TRUE(there.substr(0, 13) == here.substr(0, 13) || here.substr(14, 2) == "00");
}

}  // namespace
}  // namespace assay
