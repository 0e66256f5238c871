#include "trainer/run/environment_file.h"

#include <nlohmann/json.hpp>

#include "base/fault_points.h"
#include "base/files.h"
#include "base/json.h"
#include "base/text.h"
#include "platform/environment.h"
#include "trainer/run/run_folder.h"

namespace assay::run {
namespace {

// "cuda:1" -> the second GPU's name; else the CPU's.
std::string device_name(const platform::Environment& record, const std::string& device) {
  constexpr std::string_view kCuda = "cuda:";
  if (!device.starts_with(kCuda)) return record.cpu.model;
  const auto index = parse_uint64(std::string_view(device).substr(kCuda.size()));
  return index && *index < record.gpus.size() ? record.gpus[*index].name : device;
}

}  // namespace

void write_environment(const EnvironmentRequest& request) {
  const platform::Environment record = platform::record_environment({request.run_dir});
  nlohmann::json json = parse_json(platform::to_json(record), "environment record");
  json["command"] = request.command;
  json["device"] = request.device;
  json["device_name"] = device_name(record, request.device);
  json["world_size"] = request.world_size;
  json["num_threads"] = request.num_threads;
  json["num_workers"] = request.num_workers;
  json["versions"] = request.versions;
  json["data"] = request.data;
  json["armed_faults"] = armed_faults();
  const std::string text = json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
  write_file_durably(join_path(request.run_dir, kEnvironmentFile), text + "\n", "environment");
}

}  // namespace assay::run
