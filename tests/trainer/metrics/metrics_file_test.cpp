// Reading metrics.jsonl back and cutting logs, at every byte.
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include <gmock/gmock.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "tests/trainer/metrics/records.h"
#include "trainer/metrics/step_record.h"

namespace assay::metrics {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class LogFile {
 public:
  explicit LogFile(std::string_view text) : path_(join_path(folder_.path(), "metrics.jsonl")) {
    FileWriter file(path_, "metrics");
    file.write(text);
    file.close();
  }
  const std::string& path() const { return path_; }
  std::string refusal() const {
    try {
      read_metrics(path_);
    } catch (const CheckpointError& error) {
      return error.what();
    }
    return "";
  }

 private:
  TemporaryFolder folder_;
  std::string path_;
};

std::string three_steps_and_an_evaluation() {
  return to_json_line(step_record(1)) + "\n" + to_json_line(step_record(2)) + "\n" +
         to_json_line(eval_record(2)) + "\n" + to_json_line(step_record(3)) + "\n";
}

TEST(ReadMetrics, GivesBackEveryField) {
  const MetricsFile file = read_metrics(LogFile(three_steps_and_an_evaluation()).path());
  ASSERT_EQ(file.steps.size(), 3u);
  ASSERT_EQ(file.evals.size(), 1u);
  EXPECT_FALSE(file.has_torn_tail);
  EXPECT_EQ(to_json_line(file.steps[2]), to_json_line(step_record(3)));
  EXPECT_EQ(to_json_line(file.evals[0]), to_json_line(eval_record(2)));
}

TEST(ReadMetrics, GivesBackRandomNumbersBitExactly) {
  const unsigned seed = 90125;
  RecordProperty("seed", static_cast<int>(seed));
  std::mt19937_64 random(seed);
  std::string text;
  std::vector<StepRecord> records;
  for (int64_t step = 1; step <= 300; ++step) {
    StepRecord record = step_record(step);
    for (double* number : {&record.loss, &record.grad_norm, &record.learning_rate, &record.epoch}) {
      const uint64_t bits = random();
      std::memcpy(number, &bits, sizeof(bits));
    }
    records.push_back(record);
    text += to_json_line(record) + "\n";
  }
  const MetricsFile file = read_metrics(LogFile(text).path());
  ASSERT_EQ(file.steps.size(), records.size());
  for (size_t i = 0; i < records.size(); ++i) {
    EXPECT_EQ(to_json_line(file.steps[i]), to_json_line(records[i]))
        << "seed " << seed << ", " << i;
  }
}

TEST(ReadMetrics, GivesBackTheKindOfANonFiniteNumber) {
  StepRecord record = step_record(1);
  record.loss = std::numeric_limits<double>::quiet_NaN();
  record.grad_norm = -std::numeric_limits<double>::infinity();
  const MetricsFile file = read_metrics(LogFile(to_json_line(record) + "\n").path());
  EXPECT_TRUE(std::isnan(file.steps[0].loss));
  EXPECT_EQ(file.steps[0].grad_norm, record.grad_norm);
}

TEST(ReadMetrics, ToleratesACutAtEveryByteOfTheLastLine) {
  const std::string whole = to_json_line(step_record(1)) + "\n";
  const std::string text = whole + to_json_line(step_record(2)) + "\n";
  const LogFile log(text);
  for (size_t size = text.size() - 1; size >= whole.size(); --size) {
    ASSERT_EQ(::truncate(log.path().c_str(), static_cast<off_t>(size)), 0);
    const MetricsFile file = read_metrics(log.path());
    EXPECT_EQ(file.steps.size(), 1u) << size;
    EXPECT_EQ(file.has_torn_tail, size != whole.size()) << size;
  }
}

TEST(ReadMetrics, ReadsAnEmptyLog) {
  const MetricsFile file = read_metrics(LogFile("").path());
  EXPECT_TRUE(file.steps.empty());
  EXPECT_FALSE(file.has_torn_tail);
}

TEST(ReadMetrics, LeavesFieldsOfLaterReleasesAlone) {
  std::string line = to_json_line(step_record(1));
  line.insert(1, "\"gpu_name\":\"x\",");
  EXPECT_EQ(read_metrics(LogFile(line + "\n").path()).steps.size(), 1u);
}

TEST(ReadMetrics, RefusesADamagedLineNamingFileLineAndField) {
  const std::string good = to_json_line(step_record(1)) + "\n";
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string line = good;
    const size_t at = line.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return line.replace(at, from.size(), to);
  };
  struct Case {
    std::string line, expected;
  };
  const Case cases[] = {
      {"garbage\n", "expected a JSON object, got \"garbage\""},
      {"\n", "expected a JSON object"},
      {std::string(40, '\0') + "\n", "expected a JSON object"},
      {"[1]\n", "expected a JSON object"},
      {with("\"loss\":", "\"lost\":"), "the field \"loss\" is missing"},
      {with("\"step\":1,", "\"step\":1.5,"), "step is no integer: 1.5"},
      {with("\"epoch\":0.125", "\"epoch\":null"), "epoch is null, but nonfinite does not list it"},
      {with("\"epoch\":0.125", "\"epoch\":\"x\""), "epoch is no number: \"x\""},
      {with("\"loss\":2.302585092994046", "\"loss\":2.5"), "loss is 2.5, but loss_hex says"},
      {with("0x1.26bb1bbb55516p+1", "zz"), "loss_hex is no hexadecimal number: \"zz\""},
      {with("\"h2d\":2", "\"h3d\":2"), "the field \"h2d\" is missing"},
      {with("\"phases\":{", "\"phases\":5,\"x\":{"), "phases is no JSON object"},
      {"{\"event\":\"party\",\"step\":1}\n", "the event \"party\" is not known"},
      {"{\"event\":\"eval\",\"step\":1}\n", "the field \"epoch\" is missing"},
  };
  for (const Case& damaged : cases) {
    const LogFile file(good + damaged.line + good);
    EXPECT_THAT(file.refusal(), AllOf(HasSubstr(cat(file.path(), " line 2: ")),
                                      HasSubstr(damaged.expected), HasSubstr("Fix: ")))
        << damaged.line;
  }
}

TEST(ReadMetrics, RefusesAMissingFileNamingIt) {
  const TemporaryFolder folder;
  const std::string path = join_path(folder.path(), "metrics.jsonl");
  try {
    read_metrics(path);
    FAIL() << "a missing file was read";
  } catch (const CheckpointError& error) {
    EXPECT_THAT(error.what(), HasSubstr(path));
  }
}

TEST(ReadMetrics, SurvivesRandomDamage) {
  const unsigned seed = 4711;
  RecordProperty("seed", static_cast<int>(seed));
  std::mt19937 random(seed);
  const std::string good = three_steps_and_an_evaluation();
  for (int round = 0; round < 100; ++round) {
    std::string damaged = good;
    damaged[random() % damaged.size()] = static_cast<char>(random() % 256);
    const LogFile file(damaged);
    try {
      read_metrics(file.path());
    } catch (const CheckpointError& error) {
      EXPECT_NE(std::string(error.what()).find(" line "), std::string::npos);
    } catch (const std::exception& error) {
      FAIL() << "seed " << seed << ", round " << round << ": " << error.what();
    }
  }
}

TEST(SplitLog, CutsAtTheCheckpointsStep) {
  const std::string text = three_steps_and_an_evaluation();
  const SplitLog split_log = split_log_at_step(text, 2);
  EXPECT_EQ(split_log.kept, text.substr(0, text.rfind("{\"step\":3")));
  EXPECT_EQ(split_log.kept + split_log.later, text);
  EXPECT_EQ(split_log_at_step(text, 3).kept, text);
  EXPECT_EQ(split_log_at_step(text, 0).later, text);
  EXPECT_EQ(split_log_at_step("", 5).kept, "");
}

TEST(SplitLog, LosesNoByteWhereverTheLogIsTorn) {
  const std::string text = three_steps_and_an_evaluation();
  for (size_t size = 0; size <= text.size(); ++size) {
    const std::string torn = text.substr(0, size);
    const SplitLog split_log = split_log_at_step(torn, 3);
    ASSERT_EQ(split_log.kept + split_log.later, torn) << size;
    const size_t whole_lines = torn.rfind('\n') == std::string::npos ? 0 : torn.rfind('\n') + 1;
    ASSERT_EQ(split_log.kept.size(), whole_lines) << size;
  }
}

TEST(SplitLog, MovesSupersededAndDamagedLinesAside) {
  const std::string kept =
      "{\"step\":1,\"epoch\":0,\"ids\":[4,5]}\n{\"step\":2,\"epoch\":0,\"ids\":[]}\n";
  const std::string later = "{\"step\":3,\"epoch\":0,\"ids\":[6]}\n";
  const std::string damaged = std::string(16, '\0') + "\n{\"step\":\"2\"}\n{}\n[2]\n\n";
  const SplitLog split_log = split_log_at_step(kept + later + damaged, 2);
  EXPECT_EQ(split_log.kept, kept);
  EXPECT_EQ(split_log.later, later + damaged);
}

TEST(SplitLog, LeavesEveryStepOnceAfterAResume) {
  // Killed after step 3, resumed from the checkpoint of step 1, killed again and resumed from 2.
  std::string text = split_log_at_step(three_steps_and_an_evaluation(), 1).kept;
  text += to_json_line(step_record(2)) + "\n" + to_json_line(step_record(3)).substr(0, 50);
  text = split_log_at_step(text, 2).kept + to_json_line(step_record(3)) + "\n";
  const MetricsFile file = read_metrics(LogFile(text).path());
  ASSERT_EQ(file.steps.size(), 3u);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(file.steps[i].step, static_cast<int64_t>(i) + 1);
}

}  // namespace
}  // namespace assay::metrics
