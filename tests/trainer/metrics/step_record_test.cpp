// The text of a metrics line.
#include "trainer/metrics/step_record.h"

#include <clocale>
#include <cmath>
#include <cstdio>
#include <limits>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/trainer/metrics/records.h"

namespace assay::metrics {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(StepRecordLine, HasTheContractsFieldsInOrder) {
  EXPECT_EQ(to_json_line(step_record(2)),
            R"({"step":2,"epoch":0.25,"updates":1,"skipped":1,"loss":2.302585092994046,)"
            R"("learning_rate":0.1,"grad_norm":0.3333333333333333,"loss_scale":65536,)"
            R"("samples_seen":128,"tokens_seen":16384,"time_ms":36,)"
            R"("phases":{"data_wait":1,"h2d":2,"forward":3,"backward":4,"comm":5,"optimizer":6,)"
            R"("checkpoint":7,"other":8},)"
            R"("memory":{"allocated_bytes":11,"peak_allocated_bytes":12,"reserved_bytes":13,)"
            R"("host_rss_bytes":5000000000},"ids_digest":"abc0123",)"
            R"("loss_hex":"0x1.26bb1bbb55516p+1","grad_norm_hex":"0x1.5555555555555p-2"})");
}

TEST(EvalRecordLine, CarriesItsEvent) {
  EXPECT_EQ(to_json_line(eval_record(30)),
            R"({"event":"eval","step":30,"epoch":1.5,"loss":0.07,"accuracy":0.9732441471571907,)"
            R"("samples":299,"targets":300,"time_ms":12.5,"loss_hex":"0x1.1eb851eb851ecp-4"})");
}

TEST(StepRecordLine, KeepsNonFiniteNumbersVisibleInValidJson) {
  StepRecord record = step_record(3);
  record.loss = kNan;
  record.grad_norm = kInfinity;
  record.phases.comm_ms = -kInfinity;
  const nlohmann::json json = nlohmann::json::parse(to_json_line(record));  // strict
  EXPECT_TRUE(json["loss"].is_null());
  EXPECT_EQ(json["loss_hex"], "nan");
  EXPECT_TRUE(json["grad_norm"].is_null());
  EXPECT_EQ(json["grad_norm_hex"], "inf");
  EXPECT_TRUE(json["phases"]["comm"].is_null());
  EXPECT_THAT(json["nonfinite"].get<std::vector<std::string>>(),
              ElementsAre("loss", "grad_norm", "phases.comm"));
  record.grad_norm = -kInfinity;
  EXPECT_THAT(to_json_line(record), HasSubstr("\"grad_norm_hex\":\"-inf\""));
}

TEST(StepRecordLine, SaysNothingOfNonFiniteNumbersWhenThereAreNone) {
  EXPECT_EQ(to_json_line(step_record(1)).find("nonfinite"), std::string::npos);
}

TEST(EvalRecordLine, KeepsNonFiniteNumbersVisibleInValidJson) {
  EvalRecord record = eval_record(3);
  record.loss = kInfinity;
  const nlohmann::json json = nlohmann::json::parse(to_json_line(record));
  EXPECT_TRUE(json["loss"].is_null());
  EXPECT_EQ(json["loss_hex"], "inf");
  EXPECT_THAT(json["nonfinite"].get<std::vector<std::string>>(), ElementsAre("loss"));
}

TEST(StepRecordLine, IsTheSameUnderADecimalComma) {
  const std::string in_c = to_json_line(step_record(2));
  const bool is_set = std::setlocale(LC_ALL, "de_DE.UTF-8") != nullptr;
  const std::string in_german = to_json_line(step_record(2));
  std::setlocale(LC_ALL, "C");
  if (!is_set) GTEST_SKIP() << "the locale de_DE.UTF-8 is not installed";
  EXPECT_EQ(in_german, in_c);
}

}  // namespace
}  // namespace assay::metrics
