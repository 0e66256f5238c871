// Combinations of values that cannot be.
#include <gmock/gmock.h>

#include "base/text.h"
#include "tests/trainer/config/fixtures.h"
#include "trainer/config/model_sizes.h"

namespace assay::config {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Validate, AcceptsTheDefaults) { EXPECT_THAT(validate(RunConfig{}), IsEmpty()); }

TEST(Validate, ChecksEveryValueOfAConfigurationMadeInCode) {
  RunConfig config;
  config.batch_size = 0;
  config.optimizer.learning_rate = -1;
  config.device = "tpu";
  const std::vector<std::string> lines = validate(config);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_THAT(join(lines, "\n"),
              AllOf(HasSubstr("batch_size is 0"), HasSubstr("is -1"),
                    HasSubstr("device is \"tpu\", must be one of auto, cpu, cuda")));
}

TEST(Validate, JoinsModelsOnlyWithDataTheyCanRead) {
  for (const std::string& model : model_names()) {
    for (const std::string& dataset : dataset_names()) {
      const bool is_possible =
          is_gpt_model(model) ? is_token_dataset(dataset) : is_image_dataset(dataset);
      EXPECT_EQ(refusal({"--model", model, "--dataset", dataset}).empty(), is_possible)
          << model << " on " << dataset;
    }
  }
}

TEST(Validate, NamesTheFixForModelAndData) {
  EXPECT_THAT(refusal({"--model=gpt_tiny", "--dataset=digits"}),
              AllOf(HasSubstr("\"gpt_tiny\" reads tokens"), HasSubstr("\"digits\""),
                    HasSubstr("Fix: --dataset text")));
  EXPECT_THAT(refusal({"--dataset=text"}),
              AllOf(HasSubstr("\"mnist_cnn\" reads images"), HasSubstr("Fix: --dataset digits")));
}

TEST(Validate, RefusesSizesThatCannotBe) {
  EXPECT_THAT(refusal({"--model=gpt_tiny", "data.sequence_length=129"}),
              HasSubstr("data.sequence_length is 129, must be at most model.n_positions 128"));
  EXPECT_EQ(refusal({"--model=gpt_tiny", "data.sequence_length=129", "model.n_positions=129"}), "");
  EXPECT_THAT(refusal({"--model=gpt_tiny", "model.vocab_size=255"}),
              HasSubstr("model.vocab_size is 255, must be at least 256"));
  EXPECT_EQ(refusal({"--model=gpt_tiny", "model.vocab_size=2", "--dataset=synthetic"}), "");
  EXPECT_THAT(refusal({"--model=gpt_tiny", "model.n_head=3"}),
              HasSubstr("model.n_embd is 128, must be a multiple of model.n_head 3"));
  EXPECT_THAT(refusal({"model.n_layer=2"}), HasSubstr("\"mnist_cnn\" has no such size"));
  EXPECT_THAT(refusal({"data.sequence_length=5"}), HasSubstr("reads images"));
  EXPECT_EQ(refusal({"model.dropout=0"}), "");
}

TEST(Validate, RefusesSettingsWithoutEffect) {
  EXPECT_THAT(refusal({"data.synthetic_samples=5"}), HasSubstr("but data.name is \"digits\""));
  EXPECT_THAT(refusal({"--dataset=synthetic", "--data_dir=x"}), HasSubstr("reads no files"));
  EXPECT_THAT(refusal({"data.token_bits=32"}), HasSubstr("has no token files"));
  EXPECT_THAT(refusal({"--model=gpt_tiny", "--dataset=tokens", "data.token_bits=24"}),
              HasSubstr("data.token_bits is 24, must be 16 or 32"));
  EXPECT_EQ(refusal({"--model=gpt_tiny", "--dataset=tokens", "data.token_bits=32"}), "");
  EXPECT_THAT(refusal({"--warmup_steps=5"}), HasSubstr("\"constant\" has no warm-up"));
  EXPECT_THAT(refusal({"--min_lr_ratio=0.1"}), HasSubstr("\"constant\" never decays"));
  EXPECT_THAT(refusal({"--nesterov"}), HasSubstr("needs sgd with momentum > 0"));
  EXPECT_THAT(refusal({"--nesterov", "--optim=sgd", "--momentum=0"}), HasSubstr("momentum is 0"));
  EXPECT_EQ(refusal({"--nesterov", "--optim=sgd"}), "");
}

TEST(Validate, RefusesAWarmupLongerThanTheDecay) {
  EXPECT_THAT(
      refusal({"--lr_scheduler_type=cosine", "--warmup_steps=50", "--max_steps=30"}),
      AllOf(HasSubstr("schedule.warmup_steps is 50, must be at most 30"), HasSubstr("Fix: ")));
  EXPECT_THAT(refusal({"--lr_scheduler_type=linear", "--warmup_steps=50", "--max_steps=100",
                       "schedule.total_steps=40"}),
              HasSubstr("must be at most 40"));
  EXPECT_EQ(refusal({"--lr_scheduler_type=cosine", "--warmup_steps=30", "--max_steps=30"}), "");
  EXPECT_EQ(
      refusal({"--lr_scheduler_type=constant_with_warmup", "--warmup_steps=50", "--max_steps=30"}),
      "");
}

TEST(Validate, AsksForTheSettingThatAScheduleNeeds) {
  EXPECT_THAT(refusal({"--lr_scheduler_type=step"}),
              AllOf(HasSubstr("schedule.step_size is left out"), HasSubstr("Fix: set it, e.g.")));
  EXPECT_THAT(refusal({"--lr_scheduler_type=multistep"}), HasSubstr("schedule.milestones is left"));
  EXPECT_THAT(refusal({"--lr_scheduler_type=wsd"}), HasSubstr("schedule.decay_steps is left out"));
  EXPECT_EQ(refusal({"--lr_scheduler_type=step", "schedule.step_size=5", "schedule.gamma=0.5"}),
            "");
  EXPECT_EQ(refusal({"--lr_scheduler_type=multistep", "schedule.milestones=32000, 48000"}), "");
}

TEST(Validate, RefusesScheduleSettingsOfAnotherSchedule) {
  EXPECT_THAT(
      refusal({"schedule.step_size=5"}),
      AllOf(HasSubstr("\"constant\" has no such setting"), HasSubstr("--lr_scheduler_type step")));
  EXPECT_THAT(refusal({"--lr_scheduler_type=cosine", "schedule.gamma=0.5"}),
              HasSubstr("schedule.gamma is 0.5, but schedule.type \"cosine\""));
  EXPECT_THAT(refusal({"--lr_scheduler_type=step", "schedule.step_size=5", "--min_lr_ratio=0.1"}),
              HasSubstr("\"step\" never decays to it"));
}

TEST(Validate, RefusesMilestonesThatAreNoRisingNumbers) {
  for (const char* milestones : {"5,5", "7,3", "0,5", "a", "5,,7", "1.5", "5,"}) {
    EXPECT_THAT(refusal({"--lr_scheduler_type=multistep", cat("schedule.milestones=", milestones)}),
                HasSubstr("must be rising numbers of updates above 0"))
        << milestones;
  }
}

TEST(Validate, RefusesAWarmupOrDecayThatDoesNotFit) {
  EXPECT_THAT(
      refusal({"--lr_scheduler_type=multistep", "schedule.milestones=10,20", "--warmup_steps=11"}),
      HasSubstr("must be at most 10, where schedule.type \"multistep\" first falls"));
  EXPECT_EQ(refusal({"--lr_scheduler_type=step", "schedule.step_size=10", "--warmup_steps=10"}),
            "");
  EXPECT_THAT(refusal({"--lr_scheduler_type=wsd", "schedule.decay_steps=91", "--warmup_steps=10",
                       "--max_steps=100"}),
              HasSubstr("schedule.decay_steps is 91, must be at most 90"));
  EXPECT_EQ(refusal({"--lr_scheduler_type=wsd", "schedule.decay_steps=90", "--warmup_steps=10",
                     "--max_steps=100", "--min_lr_ratio=0.1"}),
            "");
}

TEST(Validate, RefusesImageSizesThatCannotBe) {
  const auto refused = [](const std::string& model, const std::string& setting) {
    return refusal({"--model", model, "--dataset=synthetic", setting});
  };
  EXPECT_THAT(refused("vit_b_16", "model.image_size=100"),
              AllOf(HasSubstr("model.image_size is 100"), HasSubstr("a multiple of 16")));
  EXPECT_THAT(refused("lenet5", "model.image_size=32"), HasSubstr("must be 28"));
  EXPECT_THAT(refused("resnet50", "model.dropout=0.1"), HasSubstr("has no dropout"));
  EXPECT_THAT(refused("resnet50", "model.n_layer=2"), HasSubstr("has no such size"));
  EXPECT_THAT(refused("gpt_tiny", "model.num_classes=10"), HasSubstr("reads tokens"));
  EXPECT_THAT(refused("gpt_tiny", "model.image_size=32"), HasSubstr("reads tokens"));
  EXPECT_EQ(refused("resnet50", "model.image_size=97"), "");
  EXPECT_EQ(refused("resnet50", "model.dropout=0"), "");
  EXPECT_EQ(refused("vit_ti_16", "model.image_size=32"), "");
}

TEST(ImageSizes, LeftOutEqualThoseOfTheNamedModel) {
  const RunConfig left_out = parse_words({"--model=vgg16", "--dataset=synthetic"}).config;
  const RunConfig given =
      parse_words({"--model=vgg16", "--dataset=synthetic", "model.num_classes=1000",
                   "model.image_size=224", "model.dropout=0.5"})
          .config;
  EXPECT_EQ(identity_digest(left_out), identity_digest(given));
  const RunConfig other =
      parse_words({"--model=vgg16", "--dataset=synthetic", "model.num_classes=10"}).config;
  EXPECT_NE(identity_digest(left_out), identity_digest(other));
  ModelConfig gpt;
  gpt.name = "gpt2";
  EXPECT_THROW(image_sizes(gpt), InternalError);
}

TEST(Validate, RefusesAJpegScaleWithoutJpegFiles) {
  EXPECT_THAT(refusal({"--dataset=digits", "--jpeg_scale=auto"}),
              AllOf(HasSubstr("data.jpeg_scale is \"auto\""), HasSubstr("\"digits\"")));
  EXPECT_EQ(refusal({"--model=resnet50", "--dataset=image_folder", "--jpeg_scale=auto"}), "");
  EXPECT_NE(refusal({"--model=resnet50", "--dataset=image_folder", "--jpeg_scale=half"}), "");
}

TEST(Augmentation, IsPartOfTheIdentity) {
  const std::vector<std::string> words = {"--model=resnet50", "--dataset=image_folder"};
  const auto digest_with = [&words](const std::string& word) {
    std::vector<std::string> all = words;
    all.push_back(word);
    return identity_digest(parse_words(all).config);
  };
  EXPECT_EQ(digest_with("--augment"), digest_with("--jpeg_scale=exact"));
  EXPECT_NE(digest_with("--augment"), digest_with("--no-augment"));
  EXPECT_NE(digest_with("--augment"), digest_with("--jpeg_scale=auto"));
}

TEST(Validate, RefusesDoublePrecisionOnAGpu) {
  EXPECT_THAT(refusal({"--fp64", "--device=cuda"}), HasSubstr("runs on the CPU only"));
  EXPECT_EQ(refusal({"--fp64"}), "");
}

TEST(Validate, RefusesToOverwriteTheRunBeingResumed) {
  EXPECT_THAT(refusal({"--overwrite_output_dir", "--resume_from_checkpoint=latest"}),
              HasSubstr("would remove the run"));
  EXPECT_EQ(refusal({"--overwrite_output_dir", "--output_dir=b",
                     "--resume_from_checkpoint=a/checkpoint-1"}),
            "");
}

TEST(Validate, RefusesUnknownKeysInAllowConfigChange) {
  EXPECT_THAT(refusal({"--allow_config_change=optimizer.learning_rate,batch_sise"}),
              AllOf(HasSubstr("unknown key \"batch_sise\""), HasSubstr("\"batch_size\"")));
  const RunConfig config =
      parse_words({"--allow_config_change", "lr, batch-size,optimizer.learning_rate"}).config;
  EXPECT_THAT(allowed_changes(config),
              ::testing::ElementsAre("batch_size", "optimizer.learning_rate"));
  EXPECT_THAT(allowed_changes(RunConfig{}), IsEmpty());
}

TEST(GptSizes, TakesOverridesOverTheNamedModel) {
  const ModelConfig model{.name = "gpt2_xl",
                          .n_layer = 2,
                          .n_head = {},
                          .n_embd = {},
                          .n_positions = {},
                          .vocab_size = {},
                          .dropout = 0.5,
                          .num_classes = {},
                          .image_size = {},
                          .init_from = {}};
  const GptSizes sizes = gpt_sizes(model);
  EXPECT_EQ(sizes.n_layer, 2);
  EXPECT_EQ(sizes.n_head, 25);
  EXPECT_EQ(sizes.n_embd, 1600);
  EXPECT_EQ(sizes.dropout, 0.5);
  EXPECT_THROW(gpt_sizes(ModelConfig{}), InternalError);
}

}  // namespace
}  // namespace assay::config
