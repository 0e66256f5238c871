#include "checkpoints/trainer_state.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "checkpoints/json_fields.h"

namespace assay::checkpoints {
namespace {

nlohmann::ordered_json scaler_to_json(const ScalerState& scaler) {
  nlohmann::ordered_json json;
  put_exact_number(json, "scale", scaler.scale);
  json["growth_tracker"] = scaler.growth_tracker;
  return json;
}

ScalerState scaler_from_json(const nlohmann::json& json, const std::string& origin) {
  JsonFields fields(json, origin, "scaler.");
  ScalerState scaler;
  scaler.scale = fields.exact_number("scale");
  scaler.growth_tracker = fields.count("growth_tracker");
  fields.finish();
  return scaler;
}

nlohmann::ordered_json best_to_json(const BestEvaluation& best) {
  nlohmann::ordered_json json;
  json["step"] = best.step;
  put_exact_number(json, "loss", best.loss);
  return json;
}

BestEvaluation best_from_json(const nlohmann::json& json, const std::string& origin) {
  JsonFields fields(json, origin, "best.");
  BestEvaluation best;
  best.step = fields.count("step");
  best.loss = fields.exact_number("loss");
  fields.finish();
  return best;
}

std::string hex_bytes(JsonFields& fields, const std::string& key) {
  std::string text = fields.text(key);
  if (!hex_decode(text)) fields.refuse(key, "must be pairs of hexadecimal digits");
  return text;
}

}  // namespace

std::string to_json(const TrainerState& state) {
  nlohmann::ordered_json json;
  json["step"] = state.step;
  json["updates"] = state.updates;
  json["skipped"] = state.skipped;
  json["samples_seen"] = state.samples_seen;
  json["tokens_seen"] = state.tokens_seen;
  json["epoch"] = state.epoch;
  json["samples_in_epoch"] = state.samples_in_epoch;
  json["schedule_type"] = state.schedule_type;
  json["schedule_total_steps"] = state.schedule_total_steps;
  put_exact_number(json, "last_learning_rate", state.last_learning_rate);
  put_exact_number(json, "last_loss", state.last_loss);
  json["optimizer"] = state.optimizer;
  json["scaler"] = state.scaler ? scaler_to_json(*state.scaler) : nlohmann::ordered_json(nullptr);
  json["best"] = state.best ? best_to_json(*state.best) : nlohmann::ordered_json(nullptr);
  json["run_id"] = state.run_id;
  json["config_json"] = state.config_json;
  return dump_json(json, "trainer_state.json");
}

std::string to_json(const RankState& state) {
  nlohmann::ordered_json json;
  json["rank"] = state.rank;
  json["cpu_rng_hex"] = state.cpu_rng_hex;
  json["cuda_rng_hex"] = state.cuda_rng_hex;
  return dump_json(json, cat("the state of rank ", state.rank));
}

TrainerState trainer_state_from_json(std::string_view text, const std::string& origin) {
  const nlohmann::json json = parse_checkpoint_json(text, origin);
  JsonFields fields(json, origin);
  TrainerState state;
  state.step = fields.count("step");
  state.updates = fields.count("updates");
  state.skipped = fields.count("skipped");
  state.samples_seen = fields.count("samples_seen");
  state.tokens_seen = fields.count("tokens_seen");
  state.epoch = fields.count("epoch");
  state.samples_in_epoch = fields.count("samples_in_epoch");
  state.schedule_type = fields.text("schedule_type");
  state.schedule_total_steps = fields.count("schedule_total_steps");
  state.last_learning_rate = fields.exact_number("last_learning_rate");
  state.last_loss = fields.exact_number("last_loss");
  state.optimizer = fields.text("optimizer");
  const nlohmann::json& scaler = fields.value("scaler");
  if (!scaler.is_null()) state.scaler = scaler_from_json(scaler, origin);
  const nlohmann::json& best = fields.value("best");
  if (!best.is_null()) state.best = best_from_json(best, origin);
  state.run_id = fields.text("run_id");
  state.config_json = fields.text("config_json");
  fields.finish();
  return state;
}

RankState rank_state_from_json(std::string_view text, const std::string& origin) {
  const nlohmann::json json = parse_checkpoint_json(text, origin);
  JsonFields fields(json, origin);
  RankState state;
  state.rank = fields.count("rank");
  state.cpu_rng_hex = hex_bytes(fields, "cpu_rng_hex");
  state.cuda_rng_hex = hex_bytes(fields, "cuda_rng_hex");
  fields.finish();
  return state;
}

}  // namespace assay::checkpoints
