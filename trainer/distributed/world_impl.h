// Inside of World, shared by its two source files.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "trainer/distributed/control_store.h"
#include "trainer/distributed/suspects.h"
#include "trainer/distributed/watch.h"
#include "trainer/distributed/world.h"

namespace assay::distributed {

struct World::Impl {
  int64_t rank = 0;
  int64_t size = 1;
  WorldSettings settings;
  Logger* log = nullptr;
  launch::ProgressPage* page = nullptr;
  std::optional<ControlStore> store;
  std::vector<RankRecord> ranks;
  CollectiveCount count;
  std::unique_ptr<Watch> watch;
  c10::intrusive_ptr<c10d::ProcessGroup> group;
  std::string backend = "none";
  c10::Device carrier{c10::kCPU};  // of tensors from one rank to another: Gloo sends no others
  int64_t num_meetings = 0;
  bool has_reported = false;
  int64_t blamed_rank = -1;  // by this rank, when it ends

  double limit_of(double timeout_seconds) const {
    if (timeout_seconds > 0) return timeout_seconds;
    return group ? settings.collective_timeout_seconds : settings.join_timeout_seconds;
  }
  std::string name(const RankRecord& record) const { return rank_text(record); }

  std::string explained(const std::string& message) {
    page->beat();  // the watch need not end a process that is about to end itself
    const Suspect suspect = explain_from_store(*store, ranks, rank, message);
    if (suspect.rank >= 0) page->blame(suspect.rank);
    blamed_rank = suspect.rank;
    return suspect.text;
  }
  bool is_over() {
    const auto failure = first_failure(*store);
    return failure && failure->rank != rank;
  }
  [[noreturn]] void throw_lost(const std::string& topic, const std::string& who, double limit) {
    const std::string message = cat(who, " did not come to the meeting ", quoted(topic), " within ",
                                    limit, " s. Fix: see what that rank says last");
    throw LaunchError(explained(message));
  }
  [[noreturn]] void throw_failure_of_other() {
    const auto failure = first_failure(*store);
    const int code = failure ? failure->exit_code : static_cast<int>(ExitCode::kLaunch);
    throw Error(static_cast<ExitCode>(code), explained(""));
  }
  std::string await(const std::string& topic, const std::string& key, double limit,
                    const std::string& who) {
    const auto value = store->wait_for(key, limit, [this] { return is_over(); });
    if (value) return *value;
    if (is_over()) throw_failure_of_other();
    throw_lost(topic, who, limit);
  }
};

}  // namespace assay::distributed
