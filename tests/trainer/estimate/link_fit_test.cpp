#include "trainer/estimate/link_fit.h"

#include <functional>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace assay::estimate {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::vector<AllReduceTime> times_of(const Link& link, const std::vector<int64_t>& ranks) {
  const Cluster cluster = {.ranks_per_node = 1, .intra = link, .inter = link};
  std::vector<AllReduceTime> times;
  for (const int64_t n : ranks) {
    for (const double bytes : {1e4, 1e6, 1e8}) {
      times.push_back({n, bytes, all_reduce_ms(Algorithm::kRing, bytes, n, cluster)});
    }
  }
  return times;
}

std::string message_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(LinkFit, FindsTheLinkThatMadeTheTimes) {
  const LinkFit fit = fit_link(times_of({25, 3}, {2, 4, 8}));
  // Nine exact rows, two unknowns: what remains is the rounding of the normal equations.
  EXPECT_NEAR(fit.link.latency_us, 25, 25 * 1e-9);
  EXPECT_NEAR(fit.link.gb_per_s, 3, 3 * 1e-9);
  EXPECT_LT(fit.worst_error_fraction, 1e-9);
}

TEST(LinkFit, StaysNearUnderNoise) {
  const unsigned seed = 20261201;
  SCOPED_TRACE(seed);
  std::mt19937 generator(seed);
  std::uniform_real_distribution<double> factor(0.98, 1.02);
  for (int i = 0; i < 50; ++i) {
    std::vector<AllReduceTime> times = times_of({40, 0.5}, {2, 4});
    for (AllReduceTime& time : times) time.ms *= factor(generator);
    // Every time is within 2 %, so a fit of relative errors cannot be off by more than about that
    // in the parameter that rules a row; 4 % leaves room for the rows that both rule.
    const LinkFit fit = fit_link(times);
    EXPECT_NEAR(fit.link.gb_per_s, 0.5, 0.5 * 0.04);
    EXPECT_NEAR(fit.link.latency_us, 40, 40 * 0.04);
  }
}

TEST(LinkFit, NeverHasANegativeLatency) {
  const std::vector<AllReduceTime> times = {{2, 1e6, 0.5}, {2, 2e6, 2.0}};
  const LinkFit fit = fit_link(times);
  EXPECT_EQ(fit.link.latency_us, 0);
  EXPECT_GT(fit.link.gb_per_s, 0);
}

TEST(LinkFit, RefusesOneSizeOnly) {
  EXPECT_THAT(message_of([] {
                fit_link(std::vector<AllReduceTime>{{2, 1e6, 1}, {4, 1e6, 2}});
              }),
              AllOf(HasSubstr("1 size(s)"), HasSubstr("2 different"), HasSubstr("Fix:")));
}

TEST(LinkFit, RefusesTimesThatCannotBe) {
  EXPECT_THAT(message_of([] {
                fit_link(std::vector<AllReduceTime>{{1, 1e6, 1}, {2, 2e6, 2}});
              }),
              HasSubstr("over 1 ranks"));
  EXPECT_THAT(message_of([] {
                fit_link(std::vector<AllReduceTime>{{2, 1e6, 0}, {2, 2e6, 2}});
              }),
              HasSubstr("in 0 ms"));
}

TEST(AllReduceTimes, AreReadLineByLine) {
  const auto times = all_reduce_times_from_text(
      "{\"ranks\":4,\"bytes\":1048576,\"ms\":1.25,\"host\":\"a\"}\n\n"
      "{\"ranks\":2,\"bytes\":1e3,\"ms\":0.5}\n",
      "x");
  ASSERT_EQ(times.size(), 2u);
  EXPECT_EQ(times[0].ranks, 4);
  EXPECT_EQ(times[0].bytes, 1048576);
  EXPECT_EQ(times[0].ms, 1.25);
  EXPECT_EQ(times[1].ranks, 2);
}

TEST(AllReduceTimes, NameTheLineThatIsWrong) {
  const std::string good = "{\"ranks\":4,\"bytes\":8,\"ms\":1}\n";
  const auto message = [&](const std::string& line) {
    return message_of([&] { all_reduce_times_from_text(good + line, "times.jsonl"); });
  };
  EXPECT_THAT(message("{\"ranks\":4,\"ms\":1}"),
              AllOf(HasSubstr("times.jsonl line 2"), HasSubstr("\"bytes\" is missing")));
  EXPECT_THAT(message("{\"ranks\":4,\"bytes\":-1,\"ms\":1}"), HasSubstr("\"bytes\" is -1"));
  EXPECT_THAT(message("{\"ranks\":1,\"bytes\":1,\"ms\":1}"), HasSubstr("\"ranks\" is 1"));
  EXPECT_THAT(message("{\"ranks\":2.5,\"bytes\":1,\"ms\":1}"), HasSubstr("\"ranks\" is 2.5"));
  EXPECT_THAT(message("{\"ranks\":2,\"bytes\":1,\"ms\":\"1\"}"), HasSubstr("\"ms\" is \"1\""));
  EXPECT_THAT(message("[1]"), HasSubstr("expected a JSON object"));
  EXPECT_THAT(message("{"), HasSubstr("times.jsonl line 2"));
}

}  // namespace
}  // namespace assay::estimate
