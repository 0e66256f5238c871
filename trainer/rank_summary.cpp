#include "trainer/rank_summary.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/text.h"
#include "trainer/run/run_folder.h"

namespace assay::trainer {
namespace {

constexpr int64_t kWarmupSteps = 3;

// Largest over smallest, less one: 0.15 is a spread of 15 %.
double skew_of(const nlohmann::json& ranks, const char* key) {
  double low = 0;
  double high = 0;
  for (const auto& rank : ranks) {
    const double value = rank.at(key).get<double>();
    low = low == 0 ? value : std::min(low, value);
    high = std::max(high, value);
  }
  return low > 0 ? high / low - 1 : 0;
}

}  // namespace

void RankSummary::add(const metrics::StepRecord& record) {
  peak_allocated_bytes_ = std::max(peak_allocated_bytes_, record.memory.peak_allocated_bytes);
  host_rss_bytes_ = std::max(host_rss_bytes_, record.memory.host_rss_bytes);
  if (++num_steps_ <= kWarmupSteps) return;
  sums_.time_ms += record.time_ms;
  sums_.phases.data_wait_ms += record.phases.data_wait_ms;
  sums_.phases.forward_ms += record.phases.forward_ms;
  sums_.phases.backward_ms += record.phases.backward_ms;
  sums_.phases.comm_ms += record.phases.comm_ms;
  sums_.comm_total_ms += record.comm_total_ms;
}

std::string RankSummary::own_text(const distributed::World& world) const {
  const auto& own = world.ranks()[static_cast<size_t>(world.rank())];
  const int64_t counted = std::max<int64_t>(num_steps_ - kWarmupSteps, 0);
  const auto mean = [&](double sum) {
    return counted > 0 ? sum / static_cast<double>(counted) : 0.0;
  };
  return nlohmann::json{{"rank", own.rank},
                        {"host", own.host},
                        {"pid", own.pid},
                        {"steps", counted},
                        {"step_ms", mean(sums_.time_ms)},
                        {"data_wait_ms", mean(sums_.phases.data_wait_ms)},
                        {"forward_ms", mean(sums_.phases.forward_ms)},
                        {"backward_ms", mean(sums_.phases.backward_ms)},
                        {"comm_exposed_ms", mean(sums_.phases.comm_ms)},
                        {"comm_total_ms", mean(sums_.comm_total_ms)},
                        {"peak_allocated_bytes", peak_allocated_bytes_},
                        {"host_rss_bytes", host_rss_bytes_}}
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void RankSummary::write(distributed::World& world, const distributed::GradientReducer& reducer,
                        const std::string& run_dir, int64_t step) const {
  const std::vector<std::string> texts = world.gather_texts("rank summary", own_text(world));
  if (!world.is_root()) return;
  nlohmann::json ranks = nlohmann::json::array();
  for (const std::string& text : texts) ranks.push_back(nlohmann::json::parse(text));
  nlohmann::json buckets = nlohmann::json::array();
  for (const auto& bucket : reducer.buckets()) buckets.push_back(bucket.bytes);
  const auto& root = ranks.front();
  const double step_ms = root.at("step_ms").get<double>();
  const double total_ms = root.at("comm_total_ms").get<double>();
  const double exposed_ms = root.at("comm_exposed_ms").get<double>();
  const nlohmann::json json = {
      {"step", step},
      {"world_size", world.size()},
      {"backend", world.backend()},
      {"comm_fraction", step_ms > 0 ? exposed_ms / step_ms : 0.0},
      {"overlap_fraction", total_ms > 0 ? 1 - std::min(exposed_ms / total_ms, 1.0) : 0.0},
      {"memory_skew_fraction", skew_of(ranks, "peak_allocated_bytes")},
      {"bucket_bytes", buckets},
      {"ranks", ranks}};
  write_file_durably(join_path(run_dir, run::kRanksFile), json.dump(2) + "\n", "ranks");
}

}  // namespace assay::trainer
