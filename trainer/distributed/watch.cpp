#include "trainer/distributed/watch.h"

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"

namespace assay::distributed {
namespace {

using launch::RankPhase;

constexpr const char* kFailureKey = "failure";
constexpr double kBeatSeconds = 0.25;
// A busy host may keep a living rank from its beats for a while.
constexpr double kSilenceSeconds = 1.8;
// A rank that learns of another's failure through a broken collective says so itself; the watch
// steps in only where it hears nothing, as with NCCL, whose kernels wait for ever.
constexpr double kFailureGraceSeconds = 3.0;
// On top of the backend's own time-out, which gives the better message.
constexpr double kStallMarginSeconds = 2.0;

std::string beat_key(int64_t rank) { return cat("beat/", rank); }

std::optional<Beat> find_beat(ControlStore& store, int64_t rank) {
  const auto text = store.find(beat_key(rank));
  if (!text) return std::nullopt;
  return beat_from_json(*text);
}

std::string standing(const PeerView& peer) {
  return cat("last finished step ", peer.beat.step, ", phase ",
             launch::phase_name(peer.beat.phase));
}

// The value that most of `counts` share; nothing if no value has more than half.
std::optional<int64_t> majority(const std::vector<int64_t>& values) {
  std::map<int64_t, size_t> counts;
  for (const int64_t value : values) ++counts[value];
  for (const auto& [value, count] : counts) {
    if (2 * count > values.size()) return value;
  }
  return std::nullopt;
}

std::string silent_text(const std::vector<PeerView>& peers) {
  std::vector<std::string> lines;
  for (const PeerView& peer : peers) {
    if (!peer.is_silent) continue;
    lines.push_back(cat(rank_text(peer.rank), " gives no sign of life (", standing(peer), ")"));
  }
  return join(lines, "; ");
}

bool waits_for_others(const PeerView& peer) {
  return peer.beat.phase == RankPhase::kComm || peer.beat.phase == RankPhase::kBackward;
}

}  // namespace

std::string to_json(const Beat& beat) {
  return nlohmann::json{{"number", beat.number},
                        {"step", beat.step},
                        {"phase", static_cast<int>(beat.phase)},
                        {"collectives", beat.collectives},
                        {"elements", beat.elements},
                        {"planned", beat.planned_elements}}
      .dump();
}

Beat beat_from_json(const std::string& text) {
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return {};
  const auto number = [&](const char* key) {
    const auto found = json.find(key);
    return found != json.end() && found->is_number_integer() ? found->get<int64_t>() : 0;
  };
  return {.number = number("number"),
          .step = number("step"),
          .phase = static_cast<RankPhase>(number("phase")),
          .collectives = number("collectives"),
          .elements = number("elements"),
          .planned_elements = number("planned")};
}

std::string suspect_text(const std::vector<PeerView>& peers, const PeerView& own) {
  const std::string silent = silent_text(peers);
  if (!silent.empty()) return silent;
  std::vector<PeerView> all = peers;
  all.push_back(own);
  for (const PeerView& view : all) {
    if (view.beat.elements == view.beat.planned_elements) continue;
    return cat(rank_text(view.rank), " reduced ", view.beat.elements, " elements where ",
               view.beat.planned_elements, " were planned (", standing(view), ")");
  }
  // Someone who computes while the others wait holds them up; so does one that is steps behind.
  for (const PeerView& view : all) {
    const bool is_alone = std::count_if(all.begin(), all.end(), waits_for_others) ==
                              static_cast<std::ptrdiff_t>(all.size()) - 1 &&
                          !waits_for_others(view);
    if (is_alone) return cat(rank_text(view.rank), " holds the others up (", standing(view), ")");
  }
  std::vector<int64_t> counts;
  for (const PeerView& view : all) counts.push_back(view.beat.collectives);
  if (const auto usual = majority(counts)) {
    for (const PeerView& view : all) {
      if (view.beat.collectives == *usual) continue;
      return cat(rank_text(view.rank), " has started ", view.beat.collectives,
                 " collectives, the others ", *usual, " (", standing(view), ")");
    }
    return "";
  }
  // Two ranks with two counts: the one behind has skipped one.
  const auto behind = std::min_element(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return a.beat.collectives < b.beat.collectives;
  });
  return cat(rank_text(behind->rank), " has started ", behind->beat.collectives,
             " collectives, fewer than the others (", standing(*behind), ")");
}

std::optional<FirstFailure> first_failure(ControlStore& store) {
  const auto text = store.find(kFailureKey);
  if (!text) return std::nullopt;
  const auto json = nlohmann::json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return std::nullopt;
  return FirstFailure{json.value("rank", int64_t{-1}), json.value("exit_code", 5),
                      json.value("message", "")};
}

void report_first_failure(ControlStore& store, const FirstFailure& failure) {
  store.set_first(kFailureKey, nlohmann::json{{"rank", failure.rank},
                                              {"exit_code", failure.exit_code},
                                              {"message", failure.message}}
                                   .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

std::string explain_from_store(ControlStore& store, const std::vector<RankRecord>& ranks,
                               int64_t own_rank, const std::string& message) {
  const auto pause = [](double seconds) {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  };
  std::map<int64_t, Beat> before;
  for (const RankRecord& rank : ranks)
    before[rank.rank] = find_beat(store, rank.rank).value_or(Beat{});
  const double end = monotonic_seconds() + kSilenceSeconds;
  while (monotonic_seconds() < end) {
    const auto failure = first_failure(store);
    if (failure && failure->rank != own_rank) {
      for (const RankRecord& rank : ranks) {
        if (rank.rank == failure->rank) {
          return cat(rank_text(rank), " failed first: ", failure->message);
        }
      }
    }
    pause(0.05);
  }
  std::vector<PeerView> peers;
  PeerView own;
  for (const RankRecord& rank : ranks) {
    PeerView view{rank, find_beat(store, rank.rank).value_or(Beat{}), false};
    view.is_silent = view.beat.number == before[rank.rank].number;
    (rank.rank == own_rank ? own : peers.emplace_back()) = view;
  }
  const std::string suspect = suspect_text(peers, own);
  return suspect.empty() ? message : cat(suspect, ". ", message);
}

struct Watch::State {
  State(ControlStore own_store, std::vector<RankRecord> all, int64_t rank,
        const launch::ProgressPage& own_page, const CollectiveCount& own_count, Settings given)
      : store(std::move(own_store)),
        ranks(std::move(all)),
        own_rank(rank),
        page(own_page),
        count(own_count),
        settings(std::move(given)) {}

  ControlStore store;
  std::vector<RankRecord> ranks;
  int64_t own_rank;
  const launch::ProgressPage& page;
  const CollectiveCount& count;
  Settings settings;
  std::mutex mutex;
  std::condition_variable changed;
  bool is_stopping = false;
  int64_t num_beats = 0;
  double failure_seen_at = 0;
  std::thread thread;

  void publish() {
    const launch::RankProgress progress = page.read();
    store.set(beat_key(own_rank), to_json({.number = ++num_beats,
                                           .step = progress.step,
                                           .phase = progress.phase,
                                           .collectives = count.started.load(),
                                           .elements = count.elements.load(),
                                           .planned_elements = count.planned_elements.load()}));
  }

  // Seconds that the present phase may last; 0: for ever (it has a deadline of its own).
  double limit() const {
    switch (page.read().phase) {
      case RankPhase::kDataWait:
      case RankPhase::kForward:
      case RankPhase::kBackward:
      case RankPhase::kComm:
      case RankPhase::kOptimizer:
        return settings.collective_timeout_seconds + kStallMarginSeconds;
      case RankPhase::kCheckpoint:
      case RankPhase::kEvaluation:
        return settings.save_timeout_seconds + kStallMarginSeconds;
      default:
        return 0;
    }
  }

  void look() {
    publish();
    const auto failure = first_failure(store);
    const double now = monotonic_seconds();
    if (failure && failure->rank != own_rank) {
      if (failure_seen_at == 0) failure_seen_at = now;
      if (now - failure_seen_at > kFailureGraceSeconds) {
        end(cat("rank ", failure->rank, " failed first: ", failure->message));
      }
    }
    const double allowed = limit();
    const launch::RankProgress progress = page.read();
    if (allowed > 0 && now - progress.heartbeat_seconds > allowed) {
      end(cat("no progress for ", static_cast<int64_t>(now - progress.heartbeat_seconds),
              " s in phase ", launch::phase_name(progress.phase), " after step ", progress.step,
              ". Fix: see the rank that is named, or raise --ddp_timeout"));
    }
  }

  void end(const std::string& message) {
    std::string text = message;
    try {
      text = explain_from_store(store, ranks, own_rank, message);
      report_first_failure(store, {own_rank, static_cast<int>(ExitCode::kLaunch), text});
    } catch (const LaunchError& error) {
      text = cat(message, " (", error.what(), ")");
    }
    settings.end_process(text);
  }

  void run() {
    std::unique_lock lock(mutex);
    while (!is_stopping) {
      lock.unlock();
      try {
        look();
      } catch (const LaunchError& error) {
        lose_store(error);
        return;
      }
      lock.lock();
      changed.wait_for(lock, std::chrono::duration<double>(kBeatSeconds),
                       [this] { return is_stopping; });
    }
  }

  // Rank 0 is gone. The main thread hears of it through its next collective, or never.
  void lose_store(const LaunchError& error) {
    std::unique_lock lock(mutex);
    changed.wait_for(lock, std::chrono::duration<double>(kFailureGraceSeconds),
                     [this] { return is_stopping; });
    if (is_stopping) return;
    lock.unlock();
    settings.end_process(error.what());
  }
};

Watch::Watch(const ControlStore& store, std::vector<RankRecord> ranks, int64_t own_rank,
             const launch::ProgressPage& page, const CollectiveCount& count, Settings settings)
    : state_(std::make_unique<State>(store.clone(), std::move(ranks), own_rank, page, count,
                                     std::move(settings))) {
  state_->thread = std::thread([this] { state_->run(); });
}

Watch::~Watch() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->is_stopping = true;
  }
  state_->changed.notify_all();
  state_->thread.join();
}

}  // namespace assay::distributed
