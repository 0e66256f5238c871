// Several ranks of the built trainer over Gloo on this host, driven from outside.
#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/text.h"
#include "checkpoints/compare.h"
#include "checkpoints/layout.h"
#include "checkpoints/reader.h"
#include "harness/ledger.h"
#include "harness/tensor_distance.h"
#include "tests/support/ranks.h"
#include "trainer/metrics/step_record.h"
#include "trainer/run/run_folder.h"

namespace assay {
namespace {

using support::ProgramEnd;
using testing::HasSubstr;
using Words = std::vector<std::string>;
using Options = std::map<std::string, std::string>;

class RanksProgram : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return join_path(folder_.path(), name); }

  std::vector<ProgramEnd> run(int64_t world_size, const Words& words,
                              support::RanksRequest request = {}) const {
    request.program = ASSAY_TRAIN_PROGRAM;
    request.words = words;
    request.world_size = world_size;
    request.working_directory = folder_.path();
    return support::run_ranks(request);
  }
  void expect_all(const std::vector<ProgramEnd>& ends, int code) const {
    for (const ProgramEnd& end : ends) EXPECT_EQ(end.code, code) << support::ends_text(ends);
  }

  // A small GPT without dropout: no batch norm, so every split into ranks is the same update.
  static Words text(const std::string& run_dir, const Options& changes = {}) {
    Options options = {{"--model", "gpt_tiny"},      {"model.n_layer", "1"},
                       {"model.n_embd", "32"},       {"model.n_head", "2"},
                       {"model.n_positions", "32"},  {"--max_steps", "4"},
                       {"--save_steps", "0"},        {"--max_train_samples", "144"},
                       {"--max_eval_samples", "13"}, {"--seed", "3"},
                       {"--batch_size", "48"},       {"--output_dir", run_dir},
                       {"--log_sample_ids", "true"}, {"--num_threads", "1"},
                       {"--num_workers", "1"},       {"--no-tensorboard", ""}};
    for (const auto& [name, value] : changes) options[name] = value;
    Words words = {"train"};
    for (const auto& [name, value] : options) {
      if (!name.starts_with("--")) {
        words.push_back(cat(name, "=", value));
      } else {
        words.push_back(name);
        if (!value.empty()) words.push_back(value);
      }
    }
    return words;
  }
  static std::vector<metrics::StepRecord> steps_of(const std::string& run_dir) {
    return metrics::read_metrics(join_path(run_dir, "metrics.jsonl")).steps;
  }
  static std::string digest_of(const std::string& run_dir) {
    const auto result = run::read_result(run_dir);
    return result ? result->state_digest : "";
  }
  // Ids of each step, over all ranks, sorted.
  static std::map<int64_t, std::vector<int64_t>> ids_by_step(const std::string& run_dir) {
    std::map<int64_t, std::vector<int64_t>> ids;
    for (int64_t rank = 0; rank < 16; ++rank) {
      const std::string file = join_path(run_dir, cat("ids-rank", rank, ".jsonl"));
      if (!path_exists(file)) continue;
      for (const std::string& line : split(read_file(file), '\n')) {
        if (line.empty()) continue;
        const auto json = nlohmann::json::parse(line);
        auto& list = ids[json.at("step").get<int64_t>()];
        for (const auto& id : json.at("ids")) list.push_back(id.get<int64_t>());
      }
    }
    for (auto& [step, list] : ids) std::sort(list.begin(), list.end());
    return ids;
  }

  TemporaryFolder folder_;
};

double largest_distance(const std::string& left, const std::string& right) {
  return harness::model_distance(left, right).greatest;
}

struct Split {
  int64_t world_size;
  int64_t accumulation;
};

class EverySplit : public RanksProgram, public testing::WithParamInterface<Split> {};

// SGD with learning rate 1 for one step: the change of the weights is the gradient.
TEST_P(EverySplit, GivesTheUpdateOfOneBigBatch) {
  const auto [world_size, accumulation] = GetParam();
  const Options same = {{"--fp64", ""},
                        {"--device", "cpu"},
                        {"--optim", "sgd"},
                        {"--learning_rate", "0.5"},
                        {"--eval_steps", "2"}};
  Options parts = same;
  parts["--batch_size"] = cat(48 / (world_size * accumulation));
  parts["--gradient_accumulation_steps"] = cat(accumulation);
  expect_all(run(1, text("whole", same)), 0);
  expect_all(run(world_size, text("split", parts)), 0);
  // Sums in another order: 2^-53 a term, some thousand terms, norm-wise far less than 1e-12.
  EXPECT_LE(largest_distance(path("whole/checkpoint-4"), path("split/checkpoint-4")), 1e-12);
  const auto whole = steps_of(path("whole"));
  const auto split = steps_of(path("split"));
  ASSERT_EQ(split.size(), whole.size());
  for (size_t i = 0; i < whole.size(); ++i) {
    EXPECT_NEAR(split[i].loss, whole[i].loss, 1e-12 * whole[i].loss);
    EXPECT_EQ(split[i].samples_seen, whole[i].samples_seen);
    EXPECT_EQ(split[i].ids_digest, whole[i].ids_digest);
  }
  EXPECT_EQ(ids_by_step(path("split")), ids_by_step(path("whole")));
}

// After one step without clipping the momentum is the gradient.
TEST_P(EverySplit, GivesTheGradientOfOneBigBatchInSinglePrecision) {
  const auto [world_size, accumulation] = GetParam();
  const Options same = {{"--device", "cpu"},        {"--optim", "sgd"},       {"--momentum", "0.9"},
                        {"--learning_rate", "0.1"}, {"--max_grad_norm", "0"}, {"--max_steps", "1"},
                        {"--max_eval_samples", "2"}};
  Options parts = same;
  parts["--batch_size"] = cat(48 / (world_size * accumulation));
  parts["--gradient_accumulation_steps"] = cat(accumulation);
  expect_all(run(1, text("whole", same)), 0);
  expect_all(run(world_size, text("split", parts)), 0);
  for (const char* run_dir : {"whole", "split"}) {
    create_directories(path(cat(run_dir, "-momentum")));
    std::filesystem::copy_file(
        join_path(path(cat(run_dir, "/checkpoint-1")), checkpoints::kOptimizerFile),
        join_path(path(cat(run_dir, "-momentum")), checkpoints::kModelFile));
  }
  // Sums of 1,536 terms, each rounded to 2^-24, in another order.
  EXPECT_LE(largest_distance(path("whole-momentum"), path("split-momentum")), 1e-5);
  EXPECT_LE(largest_distance(path("whole/checkpoint-1"), path("split/checkpoint-1")), 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Worlds, EverySplit,
                         testing::Values(Split{1, 2}, Split{1, 4}, Split{2, 1}, Split{2, 2},
                                         Split{2, 4}, Split{3, 1}, Split{3, 2}, Split{3, 4},
                                         Split{4, 1}, Split{4, 2}, Split{4, 4}));

TEST_F(RanksProgram, EvaluateEverySampleOnceWithTheSameBitsOnAnyNumberOfRanks) {
  for (const int64_t samples : {10, 11, 13}) {
    std::set<std::string> losses;
    std::set<double> accuracies;
    for (const int64_t world_size : {1, 2, 3, 4}) {
      const std::string name = cat("eval-", samples, "-", world_size);
      // No training step before the evaluation may differ: learning rate 0 would be refused, so the
      // update is too small to change a float32 weight.
      expect_all(run(world_size, text(name, {{"--max_eval_samples", cat(samples)},
                                             {"--max_steps", "1"},
                                             {"--batch_size", "3"},
                                             {"--optim", "sgd"},
                                             {"--learning_rate", "1e-30"}})),
                 0);
      const auto evals = metrics::read_metrics(path(name) + "/metrics.jsonl").evals;
      ASSERT_EQ(evals.size(), 1U);
      EXPECT_EQ(evals[0].samples, samples);
      losses.insert(hex_float(evals[0].loss));
      accuracies.insert(evals[0].accuracy);
    }
    EXPECT_EQ(losses.size(), 1U) << samples;
    EXPECT_EQ(accuracies.size(), 1U) << samples;
  }
}

TEST_F(RanksProgram, UnequalSharesOfTheLastWindowNeitherHangNorLoseSamples) {
  const Options options = {{"--max_train_samples", "13"},
                           {"--batch_size", "2"},
                           {"--num_train_epochs", "2"},
                           {"--max_steps", "8"}};
  for (const int64_t world_size : {2, 3, 4}) {
    const std::string name = cat("uneven-", world_size);
    expect_all(run(world_size, text(name, options)), 0);
    std::map<int64_t, int> uses;
    const auto steps = steps_of(path(name));
    int64_t seen = 0;
    for (const auto& [step, ids] : ids_by_step(path(name))) {
      for (const int64_t id : ids) ++uses[id];
      seen += static_cast<int64_t>(ids.size());
      EXPECT_EQ(steps[static_cast<size_t>(step) - 1].samples_seen, seen);
      if (seen % 13 == 0) {
        for (const auto& [id, count] : uses) EXPECT_EQ(count, seen / 13) << id;
      }
    }
  }
}

TEST_F(RanksProgram, AResumeIsTheSameRun) {
  const Options options = {{"--max_steps", "9"},  {"--save_steps", "3"},
                           {"--batch_size", "4"}, {"model.dropout", "0.2"},
                           {"--eval_steps", "4"}, {"--max_train_samples", "21"}};
  for (const int64_t world_size : {2, 3}) {
    const std::string control = cat("control-", world_size);
    const std::string killed = cat("killed-", world_size);
    expect_all(run(world_size, text(control, options)), 0);
    support::RanksRequest request;
    request.environment["ASSAY_FAULTS"] = "train.backward@1:5=kill";
    request.environment["TORCHELASTIC_RESTART_COUNT"] = "0";
    const auto ends = run(world_size, text(killed, options), request);
    EXPECT_EQ(ends[1].code, 137) << support::ends_text(ends);
    for (size_t rank = 0; rank < ends.size(); ++rank) {
      if (rank == 1) continue;
      EXPECT_EQ(ends[rank].code, 5) << support::ends_text(ends);
    }
    Words resume = text(killed, options);
    resume.insert(resume.end(), {"--resume_from_checkpoint", "auto"});
    expect_all(run(world_size, resume), 0);
    EXPECT_EQ(digest_of(path(killed)), digest_of(path(control)));
    const auto comparison = checkpoints::compare_runs(path(control), path(killed));
    for (const auto& difference : comparison.differences) {
      ADD_FAILURE() << difference.where << " " << difference.field << ": " << difference.left
                    << " vs " << difference.right;
    }
  }
}

TEST_F(RanksProgram, EachRankDrawsItsOwnRandomNumbersAgainAfterAResume) {
  const Options options = {
      {"--max_steps", "4"}, {"--save_steps", "2"}, {"--batch_size", "4"}, {"model.dropout", "0.5"}};
  expect_all(run(2, text("a", options)), 0);
  const auto checkpoint = checkpoints::open_checkpoint(path("a/checkpoint-2"));
  ASSERT_EQ(checkpoint.ranks.size(), 2U);
  EXPECT_NE(checkpoint.ranks[0].cpu_rng_hex, checkpoint.ranks[1].cpu_rng_hex);
  expect_all(run(2, {"train", "--resume_from_checkpoint", "a/checkpoint-2", "--output_dir", "b",
                     "--max_steps", "4"}),
             0);
  EXPECT_EQ(digest_of(path("b")), digest_of(path("a")));
}

TEST_F(RanksProgram, AnotherNumberOfRanksUsesEachRemainingSampleOnce) {
  const Options options = {{"--max_steps", "10"},
                           {"--save_steps", "3"},
                           {"--batch_size", "2"},
                           {"--max_train_samples", "80"},
                           {"--gradient_accumulation_steps", "1"}};
  expect_all(run(4, text("four", options)), 0);
  for (const int64_t world_size : {2, 8}) {
    const std::string name = cat("on-", world_size);
    expect_all(run(world_size, {"train", "--resume_from_checkpoint", "four/checkpoint-3",
                                "--output_dir", name, "--log_sample_ids"}),
               0);
    std::map<int64_t, int> uses;
    for (const auto& [step, ids] : ids_by_step(path(name))) {
      for (const int64_t id : ids) ++uses[id];
    }
    EXPECT_EQ(uses.size(), 80U);
    for (const auto& [id, count] : uses) EXPECT_EQ(count, 1) << id;
    EXPECT_EQ(ids_by_step(path(name)), ids_by_step(path("four")));
  }
  const auto refused =
      run(3, {"train", "--resume_from_checkpoint", "four/checkpoint-3", "--output_dir", "on-3"});
  expect_all(refused, 2);
  EXPECT_THAT(refused[0].output, HasSubstr("8 (batch_size 2"));
  EXPECT_THAT(refused[0].output, HasSubstr("3 ranks"));
}

TEST_F(RanksProgram, AShardedOptimizerGivesThePlainOnesResult) {
  const Options options = {{"--max_steps", "6"},
                           {"--save_steps", "3"},
                           {"--batch_size", "4"},
                           {"--max_grad_norm", "0.5"},
                           {"--weight_decay", "0.1"}};
  Options sharded = options;
  sharded["--ddp_shard_optimizer"] = "";
  expect_all(run(3, text("plain", options)), 0);
  expect_all(run(3, text("sharded", sharded)), 0);
  EXPECT_EQ(digest_of(path("sharded")), digest_of(path("plain")));
  expect_all(run(3, {"train", "--resume_from_checkpoint", "sharded/checkpoint-3", "--output_dir",
                     "resumed", "--ddp_shard_optimizer"}),
             0);
  EXPECT_EQ(digest_of(path("resumed")), digest_of(path("plain")));
}

TEST_F(RanksProgram, ReductionInBf16HalvesTheBytesAndStaysClose) {
  Options options = {{"--max_steps", "6"}, {"--batch_size", "4"}};
  expect_all(run(2, text("full", options)), 0);
  options["--ddp_reduce_dtype"] = "bf16";
  expect_all(run(2, text("half", options)), 0);
  const double distance = largest_distance(path("full/checkpoint-6"), path("half/checkpoint-6"));
  EXPECT_GT(distance, 0);
  // AdamW moves each weight by about the learning rate whatever the gradient's last bits are.
  EXPECT_LT(distance, 0.05);
}

TEST_F(RanksProgram, BucketSizesDoNotChangeTheUpdateOfTwoRanks) {
  Options options = {{"--max_steps", "4"}, {"--batch_size", "4"}};
  expect_all(run(2, text("large", options)), 0);
  options["--ddp_bucket_cap_mb"] = "0.01";
  options["--ddp_first_bucket_mb"] = "0.001";
  expect_all(run(2, text("small", options)), 0);
  options["--ddp_static_graph"] = "";
  expect_all(run(2, text("static", options)), 0);
  // Two addends have one sum, whatever bucket they travel in.
  EXPECT_EQ(digest_of(path("small")), digest_of(path("large")));
  EXPECT_EQ(digest_of(path("static")), digest_of(path("large")));
  const auto ranks = nlohmann::json::parse(read_file(path("small/ranks.json")));
  EXPECT_GT(ranks.at("bucket_bytes").size(), 3U);
}

class BatchNorms : public RanksProgram {
 protected:
  static Options images(const Options& changes = {}) {
    Options options = {{"--model", "resnet20_cifar"}, {"--dataset", "synthetic"},
                       {"model.image_size", "16"},    {"--fp64", ""},
                       {"--device", "cpu"},           {"--optim", "sgd"},
                       {"--max_steps", "3"},          {"--max_train_samples", "24"},
                       {"--max_eval_samples", "4"},   {"--eval_steps", "3"}};
    for (const auto& [name, value] : changes) options[name] = value;
    return options;
  }
  Words words(const std::string& run_dir, const Options& changes = {}) const {
    Words all = text(run_dir, images(changes));
    std::erase_if(all, [](const std::string& word) {
      return word.starts_with("model.n_");  // the text model's
    });
    return all;
  }
};

TEST_F(BatchNorms, SharedBetweenRanksTrainAsOneBigBatch) {
  expect_all(run(1, words("whole", {{"--batch_size", "8"}})), 0);
  const Options shared = {{"--sync_batch_norm", "true"}, {"--check_replicas_steps", "1"}};
  for (const int64_t world_size : {2, 4}) {
    const std::string run_dir = cat("split-", world_size);
    Options parts = shared;
    parts["--batch_size"] = cat(8 / world_size);
    expect_all(run(world_size, words(run_dir, parts)), 0);
    // 20 layers of sums in another order in float64; running statistics are among the tensors.
    EXPECT_LE(largest_distance(path("whole/checkpoint-3"), path(cat(run_dir, "/checkpoint-3"))),
              1e-10);
    EXPECT_NEAR(steps_of(path(run_dir)).back().loss, steps_of(path("whole")).back().loss, 1e-10);
  }
}

// Not shared, each rank normalises its own images: another result, and not by rounding alone.
TEST_F(BatchNorms, OfEachRankGiveAnotherUpdateThanOneBigBatch) {
  expect_all(run(1, words("whole", {{"--batch_size", "8"}})), 0);
  // Their own running statistics are no difference between replicas.
  expect_all(run(2, words("split", {{"--batch_size", "4"}, {"--check_replicas_steps", "1"}})), 0);
  EXPECT_GT(largest_distance(path("whole/checkpoint-3"), path("split/checkpoint-3")), 1e-3);
}

// Each rank has running statistics of its own; rank 0's are evaluated and saved.
TEST_F(BatchNorms, OfEachRankResumeAsTheSameRun) {
  expect_all(run(2, words("whole", {{"--batch_size", "4"}, {"--save_steps", "2"}})), 0);
  Options first = {{"--batch_size", "4"}, {"--max_steps", "2"}, {"--save_steps", "2"}};
  expect_all(run(2, words("parts", first)), 0);
  expect_all(run(2, {"train", "--resume_from_checkpoint", path("parts"), "--max_steps", "3"}), 0);
  EXPECT_EQ(digest_of(path("parts")), digest_of(path("whole")));
}

TEST_F(BatchNorms, SharedRefusesWhatCannotBeShared) {
  const auto short_end = run(2, words("a", {{"--batch_size", "5"}, {"--sync_batch_norm", ""}}));
  expect_all(short_end, 2);
  EXPECT_THAT(short_end[0].output, HasSubstr("has 4 of 10 samples"));
  const auto none = run(2, text("b", {{"--batch_size", "8"}, {"--sync_batch_norm", ""}}));
  expect_all(none, 2);
  EXPECT_THAT(none[1].output, HasSubstr("has no batch norm"));
}

TEST_F(RanksProgram, OnlyRankZeroWritesTheRun) {
  expect_all(run(2, text("run", {{"--max_steps", "2"}, {"--batch_size", "4"}})), 0);
  EXPECT_TRUE(path_exists(path("run/log-rank1.txt")));
  EXPECT_TRUE(path_exists(path("run/ids-rank1.jsonl")));
  EXPECT_EQ(steps_of(path("run")).size(), 2U);
  const auto checkpoint = checkpoints::open_checkpoint(path("run/checkpoint-2"));
  EXPECT_EQ(checkpoint.manifest.world_size, 2);
  EXPECT_EQ(checkpoint.ranks.size(), 2U);
}

}  // namespace
}  // namespace assay
