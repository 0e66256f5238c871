#include "trainer/distributed/suspects.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <thread>

#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/text.h"

namespace assay::distributed {
namespace {

using launch::RankPhase;

constexpr const char* kFailureKey = "failure";
// A busy host may keep a living rank from its beats for a while.
constexpr double kSilenceSeconds = 1.8;

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

Suspect find_silent(const std::vector<PeerView>& peers) {
  Suspect suspect;
  std::vector<std::string> lines;
  for (const PeerView& peer : peers) {
    if (!peer.is_silent) continue;
    if (suspect.rank < 0) suspect.rank = peer.rank.rank;
    lines.push_back(cat(rank_text(peer.rank), " gives no sign of life (", standing(peer), ")"));
  }
  suspect.text = join(lines, "; ");
  return suspect;
}

// A rank that left a collective out does not wait in it and comes into the next step.
Suspect find_hasty(const std::vector<PeerView>& all) {
  for (const PeerView& ahead : all) {
    for (const PeerView& behind : all) {
      const int64_t in_step = behind.beat.collectives - behind.beat.before_step;
      const bool is_hasty = ahead.beat.steps_begun == behind.beat.steps_begun + 1 &&
                            ahead.beat.in_step_before < in_step;
      if (!is_hasty) continue;
      return {ahead.rank.rank,
              cat(rank_text(ahead.rank), " went on with ", ahead.beat.in_step_before,
                  " collectives started in a step in which rank ", behind.rank.rank, " started ",
                  in_step, " (", standing(ahead), ")")};
    }
  }
  return {};
}

bool waits_for_others(const PeerView& peer) {
  return peer.beat.phase == RankPhase::kComm || peer.beat.phase == RankPhase::kBackward;
}

}  // namespace

std::string beat_key(int64_t rank) { return cat("beat/", rank); }

std::string to_json(const Beat& beat) {
  return nlohmann::json{{"number", beat.number},
                        {"step", beat.step},
                        {"phase", static_cast<int>(beat.phase)},
                        {"collectives", beat.collectives},
                        {"elements", beat.elements},
                        {"planned", beat.planned_elements},
                        {"steps_begun", beat.steps_begun},
                        {"before_step", beat.before_step},
                        {"in_step_before", beat.in_step_before}}
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
          .planned_elements = number("planned"),
          .steps_begun = number("steps_begun"),
          .before_step = number("before_step"),
          .in_step_before = number("in_step_before")};
}

Suspect find_suspect(const std::vector<PeerView>& peers, const PeerView& own) {
  if (Suspect silent = find_silent(peers); silent.rank >= 0) return silent;
  std::vector<PeerView> all = peers;
  all.push_back(own);
  for (const PeerView& view : all) {
    if (view.beat.elements == view.beat.planned_elements) continue;
    return {view.rank.rank,
            cat(rank_text(view.rank), " reduced ", view.beat.elements, " elements where ",
                view.beat.planned_elements, " were planned (", standing(view), ")")};
  }
  // Someone who computes while the others wait holds them up; so does one that is steps behind.
  for (const PeerView& view : all) {
    const bool is_alone = std::count_if(all.begin(), all.end(), waits_for_others) ==
                              static_cast<std::ptrdiff_t>(all.size()) - 1 &&
                          !waits_for_others(view);
    if (!is_alone) continue;
    return {view.rank.rank,
            cat(rank_text(view.rank), " holds the others up (", standing(view), ")")};
  }
  if (Suspect hasty = find_hasty(all); hasty.rank >= 0) return hasty;
  std::vector<int64_t> counts;
  for (const PeerView& view : all) counts.push_back(view.beat.collectives);
  if (const auto usual = majority(counts)) {
    for (const PeerView& view : all) {
      if (view.beat.collectives == *usual) continue;
      return {view.rank.rank, cat(rank_text(view.rank), " has started ", view.beat.collectives,
                                  " collectives, the others ", *usual, " (", standing(view), ")")};
    }
    return {};
  }
  // Two ranks with two counts: the one behind has skipped one.
  const auto behind = std::min_element(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return a.beat.collectives < b.beat.collectives;
  });
  return {behind->rank.rank, cat(rank_text(behind->rank), " has started ", behind->beat.collectives,
                                 " collectives, fewer than the others (", standing(*behind), ")")};
}

std::optional<FirstFailure> first_failure(ControlStore& store) {
  const auto text = store.find(kFailureKey);
  if (!text) return std::nullopt;
  const auto json = nlohmann::json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return std::nullopt;
  return FirstFailure{json.value("rank", int64_t{-1}), json.value("exit_code", 5),
                      json.value("message", ""), json.value("blames", int64_t{-1})};
}

void report_first_failure(ControlStore& store, const FirstFailure& failure) {
  store.set_first(kFailureKey, nlohmann::json{{"rank", failure.rank},
                                              {"exit_code", failure.exit_code},
                                              {"message", failure.message},
                                              {"blames", failure.blamed_rank}}
                                   .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

Suspect explain_from_store(const ControlStore& store, const std::vector<RankRecord>& ranks,
                           int64_t own_rank, const std::string& message) {
  ControlStore quick = store.with_limit(kSilenceSeconds);  // its host may be what is silent
  const auto pause = [](double seconds) {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  };
  std::map<int64_t, Beat> before;
  for (const RankRecord& rank : ranks)
    before[rank.rank] = find_beat(quick, rank.rank).value_or(Beat{});
  const double end = monotonic_seconds() + kSilenceSeconds;
  while (monotonic_seconds() < end) {
    const auto failure = first_failure(quick);
    if (failure && failure->rank != own_rank) {
      for (const RankRecord& rank : ranks) {
        if (rank.rank != failure->rank) continue;
        return {failure->blamed_rank >= 0 ? failure->blamed_rank : failure->rank,
                cat(rank_text(rank), " failed first: ", failure->message)};
      }
    }
    pause(0.05);
  }
  std::vector<PeerView> peers;
  PeerView own;
  for (const RankRecord& rank : ranks) {
    PeerView view{rank, find_beat(quick, rank.rank).value_or(Beat{}), false};
    view.is_silent = view.beat.number == before[rank.rank].number;
    (rank.rank == own_rank ? own : peers.emplace_back()) = view;
  }
  Suspect suspect = find_suspect(peers, own);
  suspect.text = suspect.text.empty() ? message : cat(suspect.text, ". ", message);
  return suspect;
}

}  // namespace assay::distributed
