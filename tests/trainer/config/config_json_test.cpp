// config.json: the canonical text, reading it back, digests, differences.
#include <random>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "base/digest.h"
#include "base/text.h"
#include "tests/trainer/config/fixtures.h"
#include "trainer/config/fields.h"
#include "trainer/config/values.h"

namespace assay::config {
namespace {

using ::testing::HasSubstr;

RunConfig unusual_config() {
  RunConfig config;
  for (const Field& field : fields()) field.set(config, *value_from_text(field, field.example));
  config.optimizer.learning_rate = 0.1;  // no short binary form
  config.seed = UINT64_MAX;
  config.output_dir =
      "runs/Gr\xC3\xB6\xC3\x9F"
      "e \"\n";
  return config;
}

TEST(ConfigJson, RoundTripsEveryField) {
  for (const RunConfig& config : {RunConfig{}, unusual_config()}) {
    const std::string text = config_to_json(config);
    EXPECT_EQ(config_to_json(config_from_json(text, "test")), text);
  }
  EXPECT_EQ(config_from_json(config_to_json(unusual_config()), "test").seed, UINT64_MAX);
}

TEST(ConfigJson, RoundTripsRandomNumbersBitExactly) {
  const unsigned seed = 7041;
  RecordProperty("seed", static_cast<int>(seed));
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> exponent(-300, 300);
  for (int round = 0; round < 100; ++round) {
    RunConfig config;
    config.optimizer.learning_rate = std::pow(10.0, exponent(random));
    config.seed = random();
    const RunConfig read = config_from_json(config_to_json(config), "test");
    ASSERT_EQ(read.optimizer.learning_rate, config.optimizer.learning_rate) << "seed " << seed;
    ASSERT_EQ(read.seed, config.seed) << "seed " << seed;
  }
}

TEST(ConfigJson, HoldsEveryFieldSortedWithNullForUnset) {
  const nlohmann::ordered_json json = nlohmann::ordered_json::parse(config_to_json(RunConfig{}));
  size_t num_values = 0;
  std::string earlier;
  for (const auto& [key, value] : json.items()) {
    EXPECT_LT(earlier, key);
    earlier = key;
    num_values += value.is_object() ? value.size() : 1;
  }
  EXPECT_EQ(num_values, fields().size());
  EXPECT_TRUE(json["max_steps"].is_null());
  EXPECT_TRUE(json["model"]["n_layer"].is_null());
  EXPECT_TRUE(json["output_dir"].is_null());
  EXPECT_EQ(config_to_json(RunConfig{}).back(), '\n');
}

TEST(ConfigJson, WritesAFileThatIsItsOwnConfiguration) {
  const RunConfig config = parse_words({"--max_steps=5", "--model=gpt_tiny"}).config;
  const ConfigFile file(config_file_text(config));
  EXPECT_EQ(config_to_json(file.parse().config), config_to_json(config));
  EXPECT_EQ(config_to_json(config_from_json(config_file_text(config), "test")),
            config_to_json(config));
  EXPECT_THAT(config_file_text(config), HasSubstr(sha256_hex(config_to_json(config))));
}

TEST(ConfigJson, RefusesATextThatDoesNotMatchItsDigest) {
  std::string text = config_file_text(RunConfig{});
  const size_t at = text.find("\"seed\": 42");
  ASSERT_NE(at, std::string::npos);
  text.replace(at, 10, "\"seed\": 43");
  try {
    config_from_json(text, "run/config.json");
    FAIL() << "the changed text was accepted";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("run/config.json does not match its config_digest"));
  }
}

TEST(ConfigJson, RefusesWhatItDidNotWrite) {
  for (const char* text :
       {"", "[]", "{\"bogus\": 1}", "{\"seed\": -1}", "{\"seed\": 1, \"seed\": 1}"}) {
    EXPECT_THROW(config_from_json(text, "origin"), ConfigError) << text;
  }
}

TEST(IdentityDigest, ChangesWithEveryIdentityFieldAndNoOther) {
  const RunConfig base = parse_words({"--model=gpt_tiny", "--dataset=synthetic"}).config;
  for (const Field& field : fields()) {
    RunConfig changed = base;
    field.set(changed, *value_from_text(field, field.example));
    if (field.get(changed) == field.get(base)) continue;
    const bool is_same = config_differences(base, changed).empty();
    const bool must_differ = field.role == FieldRole::kIdentity && !is_same;
    EXPECT_EQ(identity_digest(changed) != identity_digest(base), must_differ) << field.key;
  }
}

TEST(IdentityDigest, TakesALeftOutSettingForItsEffectiveValue) {
  const RunConfig left_out = parse_words({"--model=gpt_tiny"}).config;
  const RunConfig given = parse_words({"--model=gpt_tiny", "--dataset=text", "model.n_layer=4",
                                       "model.dropout=0", "data.sequence_length=128"})
                              .config;
  EXPECT_EQ(identity_digest(left_out), identity_digest(given));
  EXPECT_TRUE(config_differences(left_out, given).empty());
  EXPECT_EQ(identity_digest(RunConfig{}), identity_digest(parse_words({}).config));
}

TEST(ConfigDifferences, NamesFieldsSortedWithBothValuesAndRole) {
  const RunConfig before = parse_words({"--max_steps=30", "--lr=0.1"}).config;
  const RunConfig after = parse_words({"--max_steps=35", "--lr=0.2", "--num_workers=2"}).config;
  const std::vector<FieldDifference> differences = config_differences(before, after);
  ASSERT_EQ(differences.size(), 3u);
  EXPECT_EQ(differences[0].key, "data.num_workers");
  EXPECT_EQ(differences[0].before, "null");
  EXPECT_EQ(differences[0].role, FieldRole::kFree);
  EXPECT_EQ(differences[1].key, "max_steps");
  EXPECT_EQ(differences[1].role, FieldRole::kTarget);
  EXPECT_EQ(differences[2].key, "optimizer.learning_rate");
  EXPECT_EQ(differences[2].before, "0.1");
  EXPECT_EQ(differences[2].after, "0.2");
  EXPECT_EQ(differences[2].role, FieldRole::kIdentity);
}

TEST(FieldRoles, MatchTheRulesOfAResume) {
  std::vector<std::string> targets;
  for (const Field& field : fields()) {
    if (field.role == FieldRole::kTarget) targets.emplace_back(field.key);
  }
  EXPECT_THAT(targets, ::testing::ElementsAre("max_steps", "num_train_epochs"));
  for (const char* key : {"batch_size", "gradient_accumulation_steps", "seed", "precision",
                          "deterministic", "data.max_train_samples", "schedule.warmup_steps"}) {
    EXPECT_EQ(find_field(key)->role, FieldRole::kIdentity) << key;
  }
  for (const char* key : {"schedule.total_steps", "data.directory", "data.num_workers", "device",
                          "checkpoint.save_steps", "eval_steps", "data.max_eval_samples"}) {
    EXPECT_EQ(find_field(key)->role, FieldRole::kFree) << key;
  }
}

}  // namespace
}  // namespace assay::config
