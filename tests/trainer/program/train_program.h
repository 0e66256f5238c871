// Runs of the built trainer, small enough for a test: digits and text with everything switched on.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/files.h"
#include "base/text.h"
#include "checkpoints/compare.h"
#include "tests/support/program.h"
#include "trainer/metrics/step_record.h"
#include "trainer/run/run_folder.h"

namespace assay {

using Words = std::vector<std::string>;

class TrainProgram : public ::testing::Test {
 protected:
  std::string path(std::string_view name) const { return join_path(folder_.path(), name); }

  support::ProgramEnd train(const Words& words, const std::string& faults = "",
                            std::function<int()> watch = {}) const {
    Words command{ASSAY_TRAIN_PROGRAM, "train"};
    command.insert(command.end(), words.begin(), words.end());
    return support::run_program({.command = command,
                                 .environment = {{"ASSAY_FAULTS", faults}},
                                 .working_directory = folder_.path(),
                                 .watch = std::move(watch)});
  }

  using Options = std::map<std::string, std::string>;

  static Words words_of(const std::string& run_dir, Options options, const Options& changes) {
    for (const auto& [name, value] : changes) options[name] = value;
    Words words{"--output_dir", run_dir};
    for (const auto& [name, value] : options) words.push_back(cat(name, "=", value));
    return words;
  }
  // Runs that take a few hundred milliseconds, with dropout, an epoch's end and a short window
  // inside.
  static Words small_digits(const std::string& run_dir, const Options& changes = {}) {
    return words_of(run_dir,
                    {{"--max_steps", "12"},
                     {"--save_steps", "4"},
                     {"--batch_size", "4"},
                     {"--max_train_samples", "30"},
                     {"--max_eval_samples", "20"},
                     {"--eval_steps", "5"},
                     {"--log_sample_ids", "true"},
                     {"--num_workers", "1"},
                     {"--num_threads", "1"}},
                    changes);
  }
  static Words small_text(const std::string& run_dir, const Options& changes = {}) {
    return words_of(run_dir,
                    {{"--model", "gpt_tiny"},
                     {"model.n_layer", "1"},
                     {"model.n_embd", "32"},
                     {"model.n_head", "2"},
                     {"model.dropout", "0.1"},
                     {"--max_steps", "12"},
                     {"--save_steps", "4"},
                     {"--batch_size", "2"},
                     {"--gradient_accumulation_steps", "2"},
                     {"--max_train_samples", "21"},
                     {"--max_eval_samples", "4"},
                     {"--lr_scheduler_type", "cosine"},
                     {"--warmup_steps", "3"},
                     {"--max_grad_norm", "1"},
                     {"--log_sample_ids", "true"},
                     {"--num_threads", "1"}},
                    changes);
  }

  static Words resumed(Words words) {
    words.insert(words.end(), {"--resume_from_checkpoint", "auto"});
    return words;
  }
  static run::RunResult result_of(const std::string& run_dir) {
    const auto result = run::read_result(run_dir);
    return result ? *result : run::RunResult{};
  }
  static std::vector<int64_t> steps_of(const std::string& run_dir) {
    std::vector<int64_t> steps;
    for (const auto& record : metrics::read_metrics(join_path(run_dir, "metrics.jsonl")).steps) {
      steps.push_back(record.step);
    }
    return steps;
  }
  static std::vector<int64_t> one_to(int64_t last) {
    std::vector<int64_t> steps;
    for (int64_t step = 1; step <= last; ++step) steps.push_back(step);
    return steps;
  }
  static void expect_same_run(const std::string& control, const std::string& other) {
    EXPECT_EQ(result_of(other).state_digest, result_of(control).state_digest);
    const checkpoints::Comparison comparison = checkpoints::compare_runs(control, other);
    for (const auto& difference : comparison.differences) {
      ADD_FAILURE() << difference.where << " " << difference.field << ": " << difference.left
                    << " vs " << difference.right;
    }
    EXPECT_EQ(steps_of(other), steps_of(control));
  }

  TemporaryFolder folder_;
};

}  // namespace assay
