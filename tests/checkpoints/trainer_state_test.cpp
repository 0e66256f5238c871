#include "checkpoints/trainer_state.h"

#include <cmath>
#include <limits>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "tests/checkpoints/sample_state.h"

namespace assay::checkpoints {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TrainerState round_trip(const TrainerState& state) {
  return trainer_state_from_json(to_json(state), "trainer_state.json");
}

std::string refusal(const nlohmann::ordered_json& json) {
  return thrown_message<CheckpointError>(
      [&] { trainer_state_from_json(json.dump(), "a/trainer_state.json"); });
}

nlohmann::ordered_json sample_json() {
  return nlohmann::ordered_json::parse(to_json(SampleState().parts.trainer));
}

TEST(TrainerState, ComesBackEqual) {
  TrainerState state = SampleState().parts.trainer;
  EXPECT_EQ(round_trip(state), state);
  state.scaler.reset();
  state.best.reset();
  state.tokens_seen = INT64_MAX;
  state.config_json =
      "{\"name\": \"Gr\xc3\xb6\xc3\x9f"
      "e \\\"x\\\"\"}\n";
  EXPECT_EQ(round_trip(state), state);
}

TEST(TrainerState, DoublesAreExact) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE(cat("seed ", seed));
  std::mt19937_64 random(seed);
  std::vector<double> values = {0.0,
                                -0.0,
                                0.1,
                                5e-324,
                                std::numeric_limits<double>::max(),
                                std::numeric_limits<double>::denorm_min(),
                                1.0 / 3};
  for (int count = 0; count < 500; ++count) {
    const uint64_t bits = random();
    double value = 0;
    std::memcpy(&value, &bits, sizeof value);
    if (std::isfinite(value)) values.push_back(value);
  }
  TrainerState state;
  for (const double value : values) {
    state.last_loss = value;
    const double back = round_trip(state).last_loss;
    EXPECT_EQ(std::memcmp(&back, &value, sizeof value), 0) << value;
  }
}

TEST(TrainerState, NonFiniteNumbersAreNullAndNamed) {
  TrainerState state;
  const double infinity = std::numeric_limits<double>::infinity();
  const std::vector<std::pair<double, std::string>> cases = {
      {std::nan(""), "nan"}, {infinity, "inf"}, {-infinity, "-inf"}};
  for (const auto& [value, name] : cases) {
    state.last_loss = value;
    const auto json = nlohmann::json::parse(to_json(state));
    EXPECT_TRUE(json["last_loss"].is_null());
    EXPECT_EQ(json["last_loss_hex"], name);
    const double back = round_trip(state).last_loss;
    EXPECT_TRUE(std::isnan(value) ? std::isnan(back) : back == value) << name;
  }
}

TEST(TrainerState, EveryFieldIsNeeded) {
  const nlohmann::ordered_json whole = sample_json();
  for (const auto& [key, unused] : whole.items()) {
    nlohmann::ordered_json json = sample_json();
    json.erase(key);
    EXPECT_THAT(refusal(json), AllOf(HasSubstr(cat("\"", key, "\" is missing")),
                                     HasSubstr("a/trainer_state.json"), HasSubstr("Fix: ")));
  }
}

TEST(TrainerState, EveryFieldHasOneType) {
  const nlohmann::ordered_json wrong = nlohmann::ordered_json::array({1});
  const nlohmann::ordered_json whole = sample_json();
  for (const auto& [key, unused] : whole.items()) {
    nlohmann::ordered_json json = sample_json();
    json[key] = wrong;
    EXPECT_THAT(refusal(json), HasSubstr(key)) << key;
  }
}

TEST(TrainerState, UnknownAndRepeatedFieldsAreRefused) {
  nlohmann::ordered_json json = sample_json();
  json["stpe"] = 3;
  EXPECT_THAT(refusal(json), HasSubstr("\"stpe\" is unknown"));
  json = sample_json();
  json["scaler"]["shift"] = 1;
  EXPECT_THAT(refusal(json), HasSubstr("\"scaler.shift\" is unknown"));
  const std::string text = to_json(SampleState().parts.trainer);
  const std::string twice = text.substr(0, text.rfind('}') - 1) + ",\n \"step\": 11\n}\n";
  EXPECT_THROW(trainer_state_from_json(twice, "t"), CheckpointError);
}

TEST(TrainerState, NumbersOutOfRangeAreRefusedWithTheirValue) {
  nlohmann::ordered_json json = sample_json();
  json["step"] = -1;
  EXPECT_THAT(refusal(json), AllOf(HasSubstr("\"step\" is -1"), HasSubstr("0 to 2^63-1")));
  json["step"] = 1.5;
  EXPECT_THAT(refusal(json), HasSubstr("\"step\" is 1.5"));
  json["step"] = UINT64_MAX;
  EXPECT_THAT(refusal(json), HasSubstr("18446744073709551615"));
}

TEST(TrainerState, NumberAndHexMustAgree) {
  nlohmann::ordered_json json = sample_json();
  json["last_learning_rate"] = 0.1;
  EXPECT_THAT(refusal(json), AllOf(HasSubstr("last_learning_rate"), HasSubstr("0.1")));
  json = sample_json();
  json["last_loss"] = nullptr;
  EXPECT_THAT(refusal(json), HasSubstr("last_loss"));
  json = sample_json();
  json["last_loss_hex"] = "0x1.zp+1";
  EXPECT_THAT(refusal(json), HasSubstr("last_loss_hex"));
}

TEST(RankState, ComesBackEqualAndRefusesWhatIsNotHex) {
  const RankState state{.rank = 3, .cpu_rng_hex = "00ff", .cuda_rng_hex = "a1"};
  EXPECT_EQ(rank_state_from_json(to_json(state), "rank_00003.json"), state);
  for (const std::string bad : {"0", "0g", "FFx"}) {
    const std::string text = to_json(RankState{.rank = 0, .cpu_rng_hex = bad, .cuda_rng_hex = ""});
    EXPECT_THAT(
        thrown_message<CheckpointError>([&] { rank_state_from_json(text, "rank_00000.json"); }),
        AllOf(HasSubstr("cpu_rng_hex"), HasSubstr("rank_00000.json")));
  }
}

TEST(TrainerState, TextThatIsNotUtf8IsRefusedWhenItIsWritten) {
  TrainerState state;
  state.run_id = "\xff";
  EXPECT_THROW(to_json(state), CheckpointError);
}

}  // namespace
}  // namespace assay::checkpoints
