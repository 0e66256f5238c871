#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "checkpoints/compare.h"
#include "tests/checkpoints/sample_state.h"

namespace assay::checkpoints {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Json = nlohmann::ordered_json;

Json step_line(int64_t step) {
  const double loss = 2.5 / static_cast<double>(step);
  Json line;
  line["step"] = step;
  line["epoch"] = static_cast<double>(step) / 10;
  line["updates"] = step;
  line["skipped"] = 0;
  line["loss"] = loss;
  line["loss_hex"] = hex_float(loss);
  line["learning_rate"] = 0.1;
  line["grad_norm"] = 2 * loss;
  line["grad_norm_hex"] = hex_float(2 * loss);
  line["loss_scale"] = 1;
  line["samples_seen"] = 8 * step;
  line["tokens_seen"] = 0;
  line["time_ms"] = 12.5;
  line["phases"] = {{"forward", 3.0}};
  line["memory"] = {{"allocated_bytes", 5}};
  line["ids_digest"] = cat("ids-of-", step);
  return line;
}

// Writes steps 1..count after `change` has seen each line.
void write_metrics(
    const std::string& run_dir, int64_t count,
    const std::function<void(Json& line, int64_t step)>& change = [](Json&, int64_t) {}) {
  std::string text;
  for (int64_t step = 1; step <= count; ++step) {
    Json line = step_line(step);
    change(line, step);
    text += line.dump() + "\n";
  }
  write_plain(join_path(run_dir, "metrics.jsonl"), text);
}

void set_loss(Json& line, double loss) {
  line["loss"] = loss;
  line["loss_hex"] = hex_float(loss);
}

struct RunPair {
  TemporaryFolder left;
  TemporaryFolder right;
  Comparison compare() const { return compare_runs(left.path(), right.path()); }
};

Difference first_difference_of(int64_t count, const std::function<void(Json&, int64_t)>& change) {
  const RunPair runs;
  write_metrics(runs.left.path(), count);
  write_metrics(runs.right.path(), count, change);
  const Comparison comparison = runs.compare();
  return comparison.differences.empty() ? Difference{} : comparison.differences.front();
}

TEST(CompareLogs, TimesAndMemoryDoNotCount) {
  const RunPair runs;
  write_metrics(runs.left.path(), 5);
  write_metrics(runs.right.path(), 5, [](Json& line, int64_t step) {
    line["time_ms"] = step;
    line["phases"] = {{"forward", 99.0}, {"comm", 1.0}};
    line["memory"] = {{"allocated_bytes", 77}};
  });
  const Comparison comparison = runs.compare();
  EXPECT_TRUE(comparison.is_bit_equal());
  EXPECT_EQ(comparison.compared_steps, 5);
}

TEST(CompareLogs, IdsBeforeLossMeansDataOrder) {
  const Difference difference = first_difference_of(9, [](Json& line, int64_t step) {
    if (step < 7) return;
    line["ids_digest"] = "other";
    set_loss(line, 3);
  });
  EXPECT_EQ(difference.where, "metrics.jsonl step 7");
  EXPECT_EQ(difference.field, "ids_digest");
  EXPECT_EQ(difference.left, "ids-of-7");
  EXPECT_EQ(difference.right, "other");
  EXPECT_THAT(difference.likely_reason, HasSubstr("data order"));
}

TEST(CompareLogs, LossIsComparedByItsBitsAndShownWithThem) {
  const double next = std::nextafter(0.5, 1.0);
  const Difference difference = first_difference_of(9, [&](Json& line, int64_t step) {
    if (step == 5) set_loss(line, next);
  });
  EXPECT_EQ(difference.field, "loss");
  EXPECT_EQ(difference.left, "0.5 (0x1p-1)");
  EXPECT_THAT(difference.right, HasSubstr(hex_float(next)));
  EXPECT_THAT(difference.likely_reason, HasSubstr("numbers"));
}

TEST(CompareLogs, ReasonsFollowFromWhatElseIsEqual) {
  const auto reason = [](const std::string& field, const Json& value, int64_t at) {
    return first_difference_of(9,
                               [&](Json& line, int64_t step) {
                                 if (step == at) line[field] = value;
                               })
        .likely_reason;
  };
  EXPECT_THAT(reason("learning_rate", 0.2, 4), HasSubstr("schedule"));
  EXPECT_THAT(reason("loss_scale", 2, 4), HasSubstr("scaler"));
  EXPECT_THAT(reason("samples_seen", 0, 4), HasSubstr("counters"));
  EXPECT_THAT(reason("grad_norm_hex", "0x1p+0", 4), HasSubstr("backward"));
  EXPECT_THAT(reason("loss_hex", "0x1p+0", 1), HasSubstr("start from other weights"));
}

TEST(CompareLogs, ALossThatJumpsAfterASaveMeansAWrongResume) {
  const RunPair runs;
  commit_sample(runs.left.path(), 4);
  write_metrics(runs.left.path(), 9);
  const auto reason_at = [&](int64_t at) {
    write_metrics(runs.right.path(), 9, [&](Json& line, int64_t step) {
      if (step >= at) set_loss(line, 7);
    });
    return runs.compare().differences.front().likely_reason;
  };
  EXPECT_THAT(reason_at(5), HasSubstr("RNG or weights not restored"));
  EXPECT_THAT(reason_at(6), HasSubstr("optimizer state or scaler not restored"));
  EXPECT_THAT(reason_at(8), HasSubstr("kernels"));
}

TEST(CompareLogs, EveryFieldIsListedOnceAtItsFirstStep) {
  const RunPair runs;
  write_metrics(runs.left.path(), 9);
  write_metrics(runs.right.path(), 9, [](Json& line, int64_t step) {
    if (step >= 3) set_loss(line, 7);
    if (step >= 6) line["updates"] = 0;
  });
  const Comparison comparison = runs.compare();
  ASSERT_EQ(comparison.differences.size(), 2U);
  EXPECT_EQ(comparison.differences[0].step, 3);
  EXPECT_EQ(comparison.differences[1].step, 6);
  EXPECT_EQ(comparison.differences[1].field, "updates");
}

TEST(CompareLogs, FieldsOfLaterVersionsCountToo) {
  EXPECT_EQ(first_difference_of(3, [](Json& line, int64_t) { line["experts"] = 4; }).left,
            "absent");
}

TEST(CompareLogs, NonFiniteNumbersCompareByName) {
  const RunPair runs;
  const auto make = [](const std::string& name) {
    return [name](Json& line, int64_t step) {
      if (step != 2) return;
      line["loss"] = nullptr;
      line["loss_hex"] = name;
      line["nonfinite"] = {"loss"};
    };
  };
  write_metrics(runs.left.path(), 3, make("nan"));
  write_metrics(runs.right.path(), 3, make("nan"));
  EXPECT_TRUE(runs.compare().is_bit_equal());
  write_metrics(runs.right.path(), 3, make("inf"));
  EXPECT_EQ(runs.compare().differences.at(0).right, "inf");
}

TEST(CompareLogs, AShorterRunAGapAndARepeatAreDifferences) {
  const RunPair runs;
  write_metrics(runs.left.path(), 9);
  write_metrics(runs.right.path(), 6);
  Difference first = runs.compare().differences.at(0);
  EXPECT_EQ(first.where, "metrics.jsonl step 7");
  EXPECT_EQ(first.right, "absent");
  EXPECT_THAT(first.likely_reason, HasSubstr("the right run ends at step 6"));

  const std::string path = join_path(runs.right.path(), "metrics.jsonl");
  const std::string line = step_line(4).dump() + "\n";
  write_metrics(runs.right.path(), 9);
  const std::string whole = read_file(path);
  std::string text = whole;
  text.erase(text.find(line), line.size());
  write_plain(path, text);
  first = runs.compare().differences.at(0);
  EXPECT_EQ(first.step, 4);
  EXPECT_THAT(first.likely_reason, HasSubstr("a gap"));

  write_plain(path, whole + line);
  first = runs.compare().differences.at(0);
  EXPECT_EQ(first.right, "twice");
}

TEST(CompareLogs, EvaluationsAreLinesOfTheirOwn) {
  const RunPair runs;
  write_metrics(runs.left.path(), 3);
  write_metrics(runs.right.path(), 3);
  const auto append = [](const std::string& run, double loss) {
    const std::string path = join_path(run, "metrics.jsonl");
    Json line = {{"event", "eval"},
                 {"step", 3},
                 {"loss", loss},
                 {"loss_hex", hex_float(loss)},
                 {"time_ms", loss}};
    write_plain(path, read_file(path) + line.dump() + "\n");
  };
  append(runs.left.path(), 1.0);
  append(runs.right.path(), 2.0);
  const Comparison comparison = runs.compare();
  ASSERT_EQ(comparison.differences.size(), 1U);
  EXPECT_EQ(comparison.differences[0].where, "metrics.jsonl step 3 (eval)");
  EXPECT_EQ(comparison.compared_steps, 4);
}

TEST(CompareLogs, ATornLastLineIsLeftOut) {
  const RunPair runs;
  write_metrics(runs.left.path(), 4);
  const std::string whole = read_file(join_path(runs.left.path(), "metrics.jsonl"));
  const size_t start_of_last = whole.rfind('\n', whole.size() - 2) + 1;
  for (size_t size = start_of_last; size < whole.size(); size += 9) {
    write_plain(join_path(runs.right.path(), "metrics.jsonl"), whole.substr(0, size));
    const Comparison comparison = runs.compare();
    EXPECT_EQ(comparison.compared_steps, 3);
    EXPECT_EQ(comparison.differences.at(0).step, 4);
  }
}

TEST(CompareLogs, BrokenLinesAreNamed) {
  const RunPair runs;
  write_metrics(runs.left.path(), 3);
  const std::string path = join_path(runs.right.path(), "metrics.jsonl");
  const std::string good = step_line(1).dump() + "\n";
  for (const std::string bad : {"{\"step\":2", "[]", "{\"step\":\"2\"}", "{}", ""}) {
    write_plain(path, good + bad + "\n");
    EXPECT_THAT(thrown_message<CheckpointError>([&] { runs.compare(); }),
                HasSubstr("metrics.jsonl line 2"))
        << bad;
  }
}

TEST(CompareLogs, TwoRunsWithNothingInCommonAreNotEqual) {
  const RunPair runs;
  write_plain(join_path(runs.left.path(), "metrics.jsonl"), "");
  write_plain(join_path(runs.right.path(), "metrics.jsonl"), "");
  EXPECT_THAT(thrown_message<CheckpointError>([&] { runs.compare(); }), HasSubstr("in common"));
}

std::string ledger(const std::vector<std::vector<int64_t>>& steps) {
  std::string text;
  for (size_t index = 0; index < steps.size(); ++index) {
    text += Json({{"step", index + 1}, {"epoch", 0}, {"ids", steps[index]}}).dump() + "\n";
  }
  return text;
}

TEST(CompareLedgers, TheFirstWrongIdIsNamed) {
  const RunPair runs;
  write_metrics(runs.left.path(), 2);
  write_metrics(runs.right.path(), 2);
  write_plain(join_path(runs.left.path(), "ids-rank0.jsonl"), ledger({{4, 7}, {1, 9}}));
  write_plain(join_path(runs.right.path(), "ids-rank0.jsonl"), ledger({{4, 7}, {1, 8}}));
  const Difference first = runs.compare().differences.at(0);
  EXPECT_EQ(first.where, "ids-rank0.jsonl step 2");
  EXPECT_EQ(first.field, "ids[1]");
  EXPECT_EQ(first.left, "9");
  EXPECT_EQ(first.right, "8");
  write_plain(join_path(runs.right.path(), "ids-rank0.jsonl"), ledger({{4, 7}, {1}}));
  EXPECT_EQ(runs.compare().differences.at(0).right, "absent, 1 ids");
}

TEST(CompareLedgers, OtherNumbersOfRanksCompareTheIdsOfAll) {
  const RunPair runs;
  write_metrics(runs.left.path(), 2);
  write_metrics(runs.right.path(), 2);
  write_plain(join_path(runs.left.path(), "ids-rank0.jsonl"), ledger({{4, 7}, {1, 9}}));
  write_plain(join_path(runs.right.path(), "ids-rank0.jsonl"), ledger({{7}, {1}}));
  write_plain(join_path(runs.right.path(), "ids-rank1.jsonl"), ledger({{4}, {9}}));
  EXPECT_TRUE(runs.compare().is_bit_equal());
  write_plain(join_path(runs.right.path(), "ids-rank1.jsonl"), ledger({{4}, {3}}));
  EXPECT_EQ(runs.compare().differences.at(0).step, 2);
}

TEST(CompareRuns, DifferencesComeInOrderOfStepCausesFirst) {
  const RunPair runs;
  commit_sample(runs.left.path(), 4);
  SampleState other(4);
  other.set_float(other.parts.model, "conv1.bias", 0, 1);
  CommitRequest request = request_for(runs.right.path(), other);
  request.config_digest = "config-2";
  commit_checkpoint(request);
  write_metrics(runs.left.path(), 6);
  write_metrics(runs.right.path(), 6, [](Json& line, int64_t step) {
    if (step >= 4) set_loss(line, 7);
    if (step >= 5) line["updates"] = 0;
  });
  const Comparison comparison = runs.compare();
  ASSERT_EQ(comparison.differences.size(), 3U);
  EXPECT_EQ(comparison.differences[0].where, "metrics.jsonl step 4");
  EXPECT_THAT(comparison.differences[0].likely_reason, HasSubstr("different configurations"));
  EXPECT_EQ(comparison.differences[1].where, "checkpoint-4 model.safetensors");
  EXPECT_EQ(comparison.differences[2].field, "updates");
}

}  // namespace
}  // namespace assay::checkpoints
