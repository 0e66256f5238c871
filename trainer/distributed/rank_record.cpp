#include "trainer/distributed/rank_record.h"

#include <algorithm>
#include <set>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "trainer/config/config_io.h"
#include "trainer/launch/address.h"

namespace assay::distributed {
namespace {

using launch::is_loopback;

constexpr std::string_view kFix =
    ". Fix: start every rank with the same program, the same arguments and its own rank";

// What may differ between ranks: where things lie and how much of the host a rank takes.
bool is_local_setting(std::string_view key) {
  constexpr std::string_view kLocal[] = {
      "output_dir",  "data.directory",         "data.num_workers",
      "num_threads", "resume_from_checkpoint", "device"};
  return std::find(std::begin(kLocal), std::end(kLocal), key) != std::end(kLocal);
}

std::string config_disagreement(const RankRecord& first, const RankRecord& other) {
  if (first.config_json == other.config_json) return "";
  const auto differences =
      config::config_differences(config::config_from_json(first.config_json, rank_text(first)),
                                 config::config_from_json(other.config_json, rank_text(other)));
  std::vector<std::string> lines;
  for (const config::FieldDifference& difference : differences) {
    if (is_local_setting(difference.key)) continue;
    lines.push_back(cat(difference.key, " is ", difference.before, " on ", rank_text(first),
                        " and ", difference.after, " on ", rank_text(other)));
  }
  return lines.empty() ? "" : cat("the ranks' configurations differ: ", join(lines, "; "), kFix);
}

}  // namespace

std::string to_json(const RankRecord& record) {
  return nlohmann::json{{"rank", record.rank},
                        {"world_size", record.world_size},
                        {"local_rank", record.local_rank},
                        {"host", record.host},
                        {"host_identity", record.host_identity},
                        {"pid", record.pid},
                        {"address", record.address},
                        {"build", record.build},
                        {"config", record.config_json}}
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

RankRecord rank_record_from_json(std::string_view text) {
  try {
    const auto json = nlohmann::json::parse(text);
    return {.rank = json.at("rank").get<int64_t>(),
            .world_size = json.at("world_size").get<int64_t>(),
            .local_rank = json.at("local_rank").get<int64_t>(),
            .host = json.at("host").get<std::string>(),
            .host_identity = json.at("host_identity").get<std::string>(),
            .pid = json.at("pid").get<int64_t>(),
            .address = json.at("address").get<std::string>(),
            .build = json.at("build").get<std::string>(),
            .config_json = json.at("config").get<std::string>()};
  } catch (const nlohmann::json::exception& error) {
    throw LaunchError(cat("what a rank wrote into the job's store cannot be read: ", error.what(),
                          ". Fix: give each job a MASTER_PORT of its own"));
  }
}

std::string rank_text(const RankRecord& record) {
  return cat("rank ", record.rank, " (host ", record.host, ", pid ", record.pid, ")");
}

std::string disagreement(const std::vector<RankRecord>& arrived) {
  for (size_t i = 1; i < arrived.size(); ++i) {
    const RankRecord& other = arrived[i];
    for (size_t k = 0; k < i; ++k) {
      if (arrived[k].rank != other.rank) continue;
      return cat("two processes have rank ", other.rank, ": ", rank_text(arrived[k]), " and ",
                 rank_text(other), kFix);
    }
    const RankRecord& first = arrived.front();
    if (first.world_size != other.world_size) {
      return cat("the ranks' world sizes differ: ", first.world_size, " on ", rank_text(first),
                 ", ", other.world_size, " on ", rank_text(other), kFix);
    }
    if (first.build != other.build) {
      return cat("the ranks' programs differ: ", first.build, " on ", rank_text(first), ", ",
                 other.build, " on ", rank_text(other), kFix);
    }
    const std::string config = config_disagreement(first, other);
    if (!config.empty()) return config;
  }
  return "";
}

std::string missing_ranks(const std::vector<RankRecord>& arrived, int64_t world_size) {
  std::set<int64_t> there;
  for (const RankRecord& record : arrived) there.insert(record.rank);
  std::vector<std::string> missing;
  for (int64_t rank = 0; rank < world_size; ++rank) {
    if (!there.contains(rank)) missing.push_back(cat(rank));
  }
  constexpr size_t kShown = 16;
  if (missing.size() <= kShown) return join(missing, ", ");
  const size_t hidden = missing.size() - kShown;
  missing.resize(kShown);
  return cat(join(missing, ", "), " and ", hidden, " more");
}

std::string reachable_address(const RankRecord& own, const std::vector<RankRecord>& all,
                              const std::function<std::string(const std::string&)>& route) {
  for (const RankRecord& other : all) {
    if (other.host_identity == own.host_identity || is_loopback(other.address)) continue;
    return is_loopback(own.address) ? route(other.address) : own.address;
  }
  return own.address;
}

}  // namespace assay::distributed
