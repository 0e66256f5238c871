#include "trainer/run/start_message.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "trainer/config/config_io.h"

namespace assay::run {

std::string to_json(const StartMessage& message) {
  nlohmann::json json = {{"config", config::config_to_json(message.config)},
                         {"is_complete", message.is_complete},
                         {"schedule_total_steps", message.schedule_total_steps},
                         {"checkpoint_path", message.checkpoint_path},
                         {"run_id", message.run_id}};
  if (!message.checkpoint_path.empty()) {
    json["trainer"] = checkpoints::to_json(message.trainer);
    json["ranks"] = nlohmann::json::array();
    for (const auto& rank : message.ranks) json["ranks"].push_back(checkpoints::to_json(rank));
  }
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

StartMessage start_message_from_json(const std::string& text) {
  constexpr const char* kOrigin = "rank 0's decision";
  try {
    const auto json = nlohmann::json::parse(text);
    StartMessage message;
    message.config = config::config_from_json(json.at("config").get<std::string>(), kOrigin);
    message.is_complete = json.at("is_complete").get<bool>();
    message.schedule_total_steps = json.at("schedule_total_steps").get<int64_t>();
    message.checkpoint_path = json.at("checkpoint_path").get<std::string>();
    message.run_id = json.at("run_id").get<std::string>();
    if (message.checkpoint_path.empty()) return message;
    message.trainer =
        checkpoints::trainer_state_from_json(json.at("trainer").get<std::string>(), kOrigin);
    for (const auto& rank : json.at("ranks")) {
      message.ranks.push_back(checkpoints::rank_state_from_json(rank.get<std::string>(), kOrigin));
    }
    return message;
  } catch (const nlohmann::json::exception& error) {
    throw LaunchError(cat("rank 0's decision about the start cannot be read: ", error.what(),
                          ". Fix: start every rank with the same program"));
  }
}

}  // namespace assay::run
