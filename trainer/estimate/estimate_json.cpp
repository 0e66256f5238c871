// `assay estimate --json`. Member names are API.
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "trainer/estimate/estimate.h"

namespace assay::estimate {
namespace {

using Json = nlohmann::json;

Json kinds_json(const BytesByKind& bytes) {
  Json json = Json::object();
  for (size_t kind = 0; kind < bytes.size(); ++kind) {
    json[cat(memory_kind_name(kind), "_bytes")] = bytes[kind];
  }
  return json;
}

Json memory_json(const Estimate& estimate) {
  const StepTrace& trace = estimate.trace;
  Json json = {{"load_bytes", trace.load_bytes},
               {"first_step_peak_bytes", trace.first_peak.bytes},
               {"steady_peak_bytes", trace.steady_peak.bytes},
               {"reserved_bytes", trace.reserved_bytes},
               {"saved_activations_bytes", trace.activation_bytes},
               {"at_peak", kinds_json(trace.steady_peak.by_kind)}};
  json["measured_peak_bytes"] =
      estimate.measured_peak_bytes > 0 ? Json(estimate.measured_peak_bytes) : Json(nullptr);
  return json;
}

Json rung_json(const Rung& rung) {
  return {{"rung", rung.name},
          {"options", rung.words},
          {"peak_bytes", rung.peak_bytes},
          {"needed_bytes", rung.needed_bytes}};
}

Json fits_json(const std::vector<CardFit>& fits) {
  Json list = Json::array();
  for (const CardFit& fit : fits) {
    list.push_back({{"memory_gb", fit.gb},
                    {"fits_with", fit.rung ? rung_json(*fit.rung) : Json(nullptr)},
                    {"not_in_this_release", fit.missing}});
  }
  return list;
}

Json bounds_json(const std::vector<CardBound>& bounds) {
  Json list = Json::array();
  for (const CardBound& bound : bounds) {
    list.push_back({{"card", bound.card},
                    {"step_ms", bound.step_ms},
                    {"samples_per_s", bound.samples_per_s},
                    {"tokens_per_s", bound.tokens_per_s}});
  }
  return list;
}

Json kv_json(const std::vector<KvCacheRow>& rows) {
  Json list = Json::array();
  for (const KvCacheRow& row : rows) {
    list.push_back({{"requests", row.requests},
                    {"context", row.context},
                    {"weights_bytes", row.weights_bytes},
                    {"cache_bytes", row.cache_bytes}});
  }
  return list;
}

Json link_json(const Link& link) {
  return {{"gb_per_s", link.gb_per_s}, {"latency_us", link.latency_us}};
}

Json scaling_json(const Scaling& scaling) {
  Json rows = Json::array();
  for (const ScalingRow& row : scaling.rows) {
    const ScalingPrediction& one = row.prediction;
    rows.push_back({{"ranks", one.ranks},
                    {"step_ms", one.step_ms},
                    {"total_comm_ms", one.total_comm_ms},
                    {"exposed_comm_ms", one.exposed_comm_ms},
                    {"straggler_ms", one.straggler_ms},
                    {"efficiency", one.efficiency},
                    {"peak_bytes", row.peak_bytes}});
  }
  Json buckets = Json::array();
  for (const Bucket& bucket : scaling.step.buckets) {
    buckets.push_back({{"bytes", bucket.bytes}, {"ready_ms", bucket.ready_ms}});
  }
  return {{"step_source", scaling.step_source},
          {"link_source", scaling.link_source},
          {"ranks_per_node", scaling.cluster.ranks_per_node},
          {"intra", link_json(scaling.cluster.intra)},
          {"inter", link_json(scaling.cluster.inter)},
          {"forward_ms", scaling.step.forward_ms},
          {"backward_ms", scaling.step.backward_ms},
          {"update_ms", scaling.step.update_ms},
          {"deviation_ms", scaling.step.deviation_ms},
          {"buckets", buckets},
          {"rows", rows},
          {"efficiency_bound", kEfficiencyBound},
          {"ranks_below_bound", scaling.below_bound ? Json(*scaling.below_bound) : Json(nullptr)}};
}

}  // namespace

std::string estimate_json(const Estimate& estimate) {
  const StepTrace& trace = estimate.trace;
  const Json json = {
      {"schema_version", 1},
      {"model", estimate.run.model},
      {"precision", estimate.run.precision},
      {"optimizer", estimate.run.optimizer},
      {"batch_size", estimate.run.batch_size},
      {"gradient_accumulation_steps", estimate.run.grad_accum_steps},
      {"traced_for", estimate.run.is_gpu ? "gpu" : "cpu"},
      {"parameters", trace.parameters},
      {"parameter_tensors", trace.parameter_tensors},
      {"tokens_per_micro_step", trace.tokens},
      {"memory", memory_json(estimate)},
      {"host_memory",
       {{"program_bytes", estimate.host.program_bytes},
        {"weights_bytes", estimate.host.weights_bytes},
        {"loader_bytes", estimate.host.loader_bytes},
        {"checkpoint_bytes", estimate.host.checkpoint_bytes},
        {"total_bytes", estimate.host.total_bytes()},
        {"available_bytes", estimate.host_available_bytes}}},
      {"checkpoints",
       {{"bytes_each", estimate.room.bytes_each},
        {"count", estimate.room.count},
        {"total_bytes", estimate.room.total_bytes()},
        {"free_bytes", estimate.room_free_bytes},
        {"folder", estimate.room_folder}}},
      {"flops",
       {{"forward", estimate.work.forward_flops},
        {"backward", estimate.work.backward_flops},
        {"update", estimate.work.update_flops},
        {"step", estimate.work.total_flops()},
        {"step_by_formula",
         estimate.work.formula_flops > 0 ? Json(estimate.work.formula_flops) : Json(nullptr)},
        {"bytes_moved", estimate.work.bytes_moved}}},
      {"step_bounds", bounds_json(estimate.bounds)},
      {"cards", fits_json(estimate.fits)},
      {"kv_cache", kv_json(estimate.kv_cache)},
      {"here",
       {{"device", estimate.here.device},
        {"memory_bytes", estimate.here.memory_bytes},
        {"needed_bytes", estimate.here.needed_bytes},
        {"fits", estimate.here.fits()}}},
      {"scaling", estimate.scaling ? scaling_json(*estimate.scaling) : Json(nullptr)},
  };
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace assay::estimate
