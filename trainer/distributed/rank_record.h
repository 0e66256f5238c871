// What ranks tell one another before they train, and what must agree. Torch-free, opens nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::distributed {

struct RankRecord {
  int64_t rank = 0;
  int64_t world_size = 1;
  int64_t local_rank = 0;
  std::string host;
  std::string host_identity;  // equal for ranks that share loopback
  int64_t pid = 0;
  std::string address;      // of this host, towards rank 0
  std::string build;        // version, commit and LibTorch of the program
  std::string config_json;  // what this rank's own command line says

  bool operator==(const RankRecord&) const = default;
};

std::string to_json(const RankRecord& record);
// Throws LaunchError: something else wrote into this job's store.
RankRecord rank_record_from_json(std::string_view text);

// "rank 3 (host b, pid 77)".
std::string rank_text(const RankRecord& record);

// Two processes with one rank, other world sizes, builds or configurations; empty if all is well so
// far. Not every rank need be there yet. Names the ranks and both values.
std::string disagreement(const std::vector<RankRecord>& arrived);

// Ranks of 0..world_size-1 that have not arrived, as "1, 2, 5".
std::string missing_ranks(const std::vector<RankRecord>& arrived, int64_t world_size);

// The address at which the other ranks reach `own`, given where they all are. Its own address
// towards rank 0 may be loopback, because its host name resolves to that: then the one towards the
// first rank of another host is right. `route` finds this host's address towards another.
std::string reachable_address(const RankRecord& own, const std::vector<RankRecord>& all,
                              const std::function<std::string(const std::string&)>& route);

}  // namespace assay::distributed
