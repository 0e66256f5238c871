// The table of settings as a whole: every row can be named, set, shown and read back.
#include "trainer/config/fields.h"

#include <set>

#include <gmock/gmock.h>

#include "base/text.h"
#include "tests/trainer/config/fixtures.h"
#include "trainer/config/later_release.h"
#include "trainer/config/values.h"

namespace assay::config {
namespace {

using ::testing::HasSubstr;

TEST(FieldTable, GivesEverySpellingToOneSetting) {
  std::set<std::string_view> seen;
  for (const Field& field : fields()) {
    EXPECT_TRUE(seen.insert(field.key).second) << field.key;
    for (const std::string_view name : field.names) {
      EXPECT_TRUE(name == field.key || seen.insert(name).second) << name;
    }
  }
  for (const Switch& choice : switches()) EXPECT_TRUE(seen.insert(choice.name).second);
  for (const LaterSetting& later : later_settings()) {
    EXPECT_TRUE(!later.value.empty() || !seen.contains(later.key)) << later.key;
  }
}

TEST(FieldTable, FindsEveryFieldByKeyAndByName) {
  for (const Field& field : fields()) {
    EXPECT_EQ(find_field(field.key), &field);
    for (const std::string_view name : field.names) EXPECT_EQ(find_field(name), &field) << name;
  }
}

TEST(FieldTable, HasAllowedDefaults) {
  for (const Field& field : fields()) {
    EXPECT_TRUE(is_allowed(field, field.get(RunConfig{}))) << field.key;
  }
}

TEST(FieldTable, HasExamplesThatAreAllowedAndChangeTheSetting) {
  for (const Field& field : fields()) {
    const std::optional<Value> value = value_from_text(field, field.example);
    ASSERT_TRUE(value) << field.key;
    RunConfig config;
    field.set(config, *value);
    EXPECT_EQ(field.get(config), *value) << field.key;
  }
}

TEST(FieldTable, HasHelpForEveryField) {
  for (const Field& field : fields()) {
    EXPECT_GT(field.help.size(), 5u) << field.key;
    EXPECT_FALSE(field.help.ends_with('.')) << field.key;  // the help text adds it
  }
}

TEST(FieldTable, HasChoicesForEverySpellingAndSwitch) {
  const auto has_choice = [](const Field& field, std::string_view choice) {
    return is_allowed(field, std::string(choice));
  };
  for (const Field& field : fields()) {
    for (const Spelling& spelling : field.spellings)
      EXPECT_TRUE(has_choice(field, spelling.choice));
  }
  for (const Switch& choice : switches()) {
    const Field* field = find_field(choice.key);
    ASSERT_NE(field, nullptr);
    EXPECT_TRUE(has_choice(*field, choice.value) || find_later_value(choice.key, choice.value))
        << choice.name;
  }
}

TEST(FieldTable, KnowsTheNamesOfTheHuggingFaceTrainer) {
  for (const std::string_view name : {"output_dir",
                                      "overwrite_output_dir",
                                      "max_steps",
                                      "num_train_epochs",
                                      "per_device_train_batch_size",
                                      "gradient_accumulation_steps",
                                      "learning_rate",
                                      "lr_scheduler_type",
                                      "warmup_steps",
                                      "weight_decay",
                                      "adam_beta1",
                                      "adam_beta2",
                                      "adam_epsilon",
                                      "max_grad_norm",
                                      "optim",
                                      "label_smoothing_factor",
                                      "seed",
                                      "logging_steps",
                                      "save_steps",
                                      "save_total_limit",
                                      "eval_steps",
                                      "resume_from_checkpoint",
                                      "dataloader_num_workers",
                                      "dataloader_pin_memory",
                                      "dataloader_prefetch_factor",
                                      "dataloader_drop_last"}) {
    EXPECT_NE(find_field(name), nullptr) << name;
  }
}

TEST(LaterRelease, RefusesEverySettingByName) {
  for (const LaterSetting& later : later_settings()) {
    const std::string word = later.value.empty()
                                 ? cat("--", later.key, later.takes_value ? "=fail" : "")
                                 : cat("--", later.key, "=", later.value);
    const std::string message = refusal({word});
    EXPECT_THAT(message, HasSubstr("is not in this release (0.1)")) << word;
    EXPECT_THAT(message, HasSubstr(std::string(later.value.empty() ? later.key : later.value)));
    EXPECT_THAT(message, HasSubstr("Fix: "));
    EXPECT_THAT(message, ::testing::Not(HasSubstr("did you mean"))) << word;
  }
}

TEST(LaterRelease, RefusesValuesThatFollowAfterASpace) {
  EXPECT_THAT(refusal({"--on_oom", "ladder"}), HasSubstr("--on_oom is not in this release"));
  EXPECT_THAT(refusal({"--profile-steps", "3:5"}), HasSubstr("--profile_steps is not in this"));
  EXPECT_THAT(refusal({"--batch_size", "auto"}), HasSubstr("batch_size \"auto\" is not in this"));
  EXPECT_THAT(refusal({"--no-gradient-checkpointing"}), HasSubstr("is not in this release"));
}

TEST(LaterRelease, RefusesJsonKeys) {
  const ConfigFile file(R"({"gradient_checkpointing": true, "batch_size": "auto", "fp16": true})");
  const std::string message = file.refusal();
  EXPECT_THAT(message, HasSubstr("gradient_checkpointing is not in this release (0.1)"));
  EXPECT_THAT(message, HasSubstr("batch_size \"auto\" is not in this release (0.1)"));
  EXPECT_THAT(message, HasSubstr("fp16 is not in this release (0.1)"));
  EXPECT_THAT(message, HasSubstr(file.path()));
}

}  // namespace
}  // namespace assay::config
