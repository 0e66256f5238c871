#include "tests/harness/fabricated_run.h"

#include <fstream>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/text.h"
#include "checkpoints/writer.h"
#include "trainer/metrics/step_record.h"

namespace assay::harness {
namespace {

constexpr int64_t kBatch = 2;
constexpr int64_t kSamples = 10;  // an epoch is five steps

metrics::StepRecord record_of(int64_t step, const FabricatedRun& run) {
  metrics::StepRecord record;
  record.step = step;
  record.updates = step;
  record.epoch = static_cast<double>(step * kBatch) / static_cast<double>(kSamples);
  record.loss = 2.0 / static_cast<double>(step);
  if (step == run.other_loss_step) record.loss += run.other_loss;
  record.learning_rate = step == run.other_rate_step ? 0.00101 : 0.001;
  record.grad_norm = 1.5;
  record.samples_seen = step * kBatch;
  record.time_ms = 10;
  record.phases.forward_ms = 4;
  record.phases.backward_ms = 6;
  record.ids_digest = cat("ids", step, step == run.swapped_ids_step ? "x" : "");
  return record;
}

void write_logs(const std::string& folder, const FabricatedRun& run) {
  std::ofstream metrics_file(join_path(folder, "metrics.jsonl"));
  std::ofstream ids_file(join_path(folder, "ids-rank0.jsonl"));
  for (int64_t step = 1; step <= run.steps; ++step) {
    if (step != run.missing_step) metrics_file << to_json_line(record_of(step, run)) << "\n";
    if (step == run.double_step) metrics_file << to_json_line(record_of(step, run)) << "\n";
    const int64_t first = (step - 1) * kBatch % kSamples;
    std::vector<int64_t> ids = {first, first + 1};
    if (step == run.swapped_ids_step) std::swap(ids[0], ids[1]);
    ids_file << nlohmann::json{{"step", step},
                               {"epoch", (step - 1) * kBatch / kSamples},
                               {"ids", ids}}
                    .dump()
             << "\n";
  }
}

void write_checkpoint(const std::string& folder, int64_t step, const FabricatedRun& run) {
  const bool is_last = step == run.steps;
  std::vector<float> weights = {1.0f, 2.0f, static_cast<float>(step)};
  if (is_last) weights[1] += run.weight_change;
  const std::vector<float> moments = {0.5f, 0.25f, 0.125f};
  const auto view = [](const std::string& name, const std::vector<float>& values) {
    return checkpoints::TensorView{name, "F32", {3}, values.data(), values.size() * 4};
  };
  checkpoints::CommitRequest request;
  request.run_dir = folder;
  request.config_digest = "config";
  request.data_digest = "data";
  request.parts.model = {view("fc.weight", weights)};
  request.parts.optimizer = {view("exp_avg/fc.weight", moments)};
  request.parts.trainer.step = step;
  request.parts.trainer.updates = step;
  request.parts.trainer.schedule_type = "constant";
  request.parts.trainer.optimizer = "adamw";
  request.parts.trainer.run_id = "run";
  request.parts.trainer.config_json = "{}";
  checkpoints::RankState rank;
  rank.cpu_rng_hex = is_last && run.rng_change != 0 ? "00ff01" : "00ff00";
  request.parts.ranks = {rank};
  checkpoints::commit_checkpoint(request);
}

}  // namespace

void write_run(const std::string& folder, const FabricatedRun& run) {
  create_directories(folder);
  write_logs(folder, run);
  for (int64_t step = run.save_steps; step <= run.steps; step += run.save_steps) {
    write_checkpoint(folder, step, run);
  }
  std::ofstream(join_path(folder, "result.json"))
      << nlohmann::json{{"status", "completed"},   {"final_step", run.steps},
                        {"final_loss", 0.2},       {"state_digest", run.state_digest},
                        {"stop_reason", "target"}, {"exit_code", 0},
                        {"wall_seconds", 1.0},     {"startup_seconds", 0.5}}
             .dump();
}

}  // namespace assay::harness
