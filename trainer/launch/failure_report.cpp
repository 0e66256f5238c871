#include "trainer/launch/failure_report.h"

#include <algorithm>
#include <map>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "trainer/launch/signals.h"

namespace assay::launch {
namespace {

using nlohmann::json;

constexpr int kLaunchCode = static_cast<int>(ExitCode::kLaunch);
constexpr size_t kMostMessageBytes = size_t{16} << 10;  // of a report that goes to other nodes

enum class Blame { kOwnReason, kStopped, kLostPeers, kNone };

// Did it end as a rank does that was asked to stop?
bool is_stopped_as_asked(const RankEnd& end, int stop_signal) {
  return stop_signal != 0 &&
         (end.signal_number == stop_signal || end.exit_code == 128 + stop_signal);
}

Blame blame_of(const RankEnd& end, int stop_signal) {
  if (end.was_stopped || end.is_accused) return Blame::kStopped;
  if (end.treatment == RankTreatment::kOverdue) return Blame::kOwnReason;
  if (end.treatment == RankTreatment::kEnded) return Blame::kNone;
  if (is_stopped_as_asked(end, stop_signal)) return Blame::kNone;
  if (end.signal_number != 0) return Blame::kOwnReason;
  if (end.exit_code == 0) return Blame::kNone;
  const bool is_echo = end.progress.blamed_rank >= 0 && end.progress.blamed_rank != end.rank;
  const bool has_lost_peers = end.exit_code == kLaunchCode && end.rank >= 0;
  return is_echo || has_lost_peers ? Blame::kLostPeers : Blame::kOwnReason;
}

std::string end_text(const RankEnd& end) {
  if (end.treatment == RankTreatment::kOverdue) {
    return "did not end within the grace period after the signal to stop and was killed by SIGKILL";
  }
  if (end.was_stopped) return "is stopped (as by SIGSTOP) and holds up the others";
  if (end.is_accused) return "holds up the others, which have ended for it";
  if (end.signal_number != 0) return cat("was killed by ", signal_text(end.signal_number));
  return cat("ended with exit code ", end.exit_code);
}

json json_of(const RankEnd& end) {
  return {{"rank", end.rank},
          {"local_rank", end.local_rank},
          {"pid", end.pid},
          {"host", end.host},
          {"exit_code", end.exit_code},
          {"signal", end.signal_number},
          {"treatment", static_cast<int>(end.treatment)},
          {"stopped", end.was_stopped},
          {"accused", end.is_accused},
          {"step", end.progress.step},
          {"phase", static_cast<int>(end.progress.phase)},
          {"blames", end.progress.blamed_rank},
          {"message", end.message.substr(0, kMostMessageBytes)}};
}

// Throws nlohmann's exceptions.
RankEnd end_from(const json& object) {
  RankEnd end;
  end.rank = object.at("rank").get<int64_t>();
  end.local_rank = object.at("local_rank").get<int64_t>();
  end.pid = object.at("pid").get<int64_t>();
  end.host = object.at("host").get<std::string>();
  end.exit_code = std::clamp(object.at("exit_code").get<int>(), 0, 255);
  end.signal_number = std::clamp(object.at("signal").get<int>(), 0, 127);
  const int treatment = object.at("treatment").get<int>();
  end.treatment = treatment == static_cast<int>(RankTreatment::kOverdue) ? RankTreatment::kOverdue
                                                                         : RankTreatment::kNone;
  end.was_stopped = object.at("stopped").get<bool>();
  end.is_accused = object.at("accused").get<bool>();
  end.progress.step = object.at("step").get<int64_t>();
  end.progress.phase = static_cast<RankPhase>(object.at("phase").get<int32_t>());
  end.progress.blamed_rank = object.at("blames").get<int64_t>();
  end.message = object.at("message").get<std::string>();
  return end;
}

// From another host: any bytes may come.
template <class Value>
std::optional<Value> read_json(const std::string& text, Value (*read)(const json&)) {
  try {
    return read(parse_json(text, "a report", {.allow_comments = false, .max_depth = 4}));
  } catch (const ConfigError&) {
    return std::nullopt;
  } catch (const json::exception&) {
    return std::nullopt;
  }
}

GroupOutcome outcome_from(const json& object) {
  GroupOutcome outcome;
  outcome.exit_code = std::clamp(object.at("exit_code").get<int>(), 0, 255);
  outcome.highest_step = object.at("highest_step").get<int64_t>();
  if (object.contains("cause")) outcome.cause = end_from(object.at("cause"));
  return outcome;
}

std::string dumped(const json& object) {
  return object.dump(-1, ' ', true, json::error_handler_t::replace);
}

}  // namespace

RankEnd lost_node(const std::string& text) {
  RankEnd end;
  end.rank = -1;
  end.exit_code = kLaunchCode;
  end.message = text;
  return end;
}

std::string to_json(const RankEnd& end) { return dumped(json_of(end)); }

std::optional<RankEnd> rank_end_from_json(const std::string& text) {
  return read_json<RankEnd>(text, end_from);
}

int launcher_code(const RankEnd& end) {
  if (end.was_stopped || end.is_accused) return kLaunchCode;
  return end.signal_number != 0 ? 128 + end.signal_number : end.exit_code;
}

const RankEnd* root_cause(const std::vector<RankEnd>& ends, int stop_signal) {
  // A signal to stop that comes before a rank can handle it kills it, and its peers lose it.
  const bool was_one_cut = std::any_of(ends.begin(), ends.end(), [&](const RankEnd& end) {
    return stop_signal != 0 && end.signal_number == stop_signal;
  });
  const RankEnd* cause = nullptr;
  for (const RankEnd& end : ends) {
    const Blame blame = blame_of(end, stop_signal);
    if (blame == Blame::kNone || (blame == Blame::kLostPeers && was_one_cut)) continue;
    const bool is_worse =
        cause == nullptr || blame < blame_of(*cause, stop_signal) ||
        (blame == blame_of(*cause, stop_signal) && end.ended_at < cause->ended_at);
    if (is_worse) cause = &end;
  }
  if (cause == nullptr || blame_of(*cause, stop_signal) != Blame::kLostPeers) return cause;
  const int64_t blamed = blamed_by_most(ends);
  for (const RankEnd& end : ends) {
    if (end.rank == blamed && blame_of(end, stop_signal) == Blame::kLostPeers) cause = &end;
  }
  return cause;
}

int64_t blamed_by_most(const std::vector<RankEnd>& ends) {
  std::map<int64_t, int64_t> votes;
  for (const RankEnd& end : ends) {
    const int64_t blamed = end.progress.blamed_rank;
    if (blamed >= 0 && blamed != end.rank && !end.was_stopped) ++votes[blamed];
  }
  int64_t most = -1;
  for (const auto& [rank, count] : votes) {
    if (most < 0 || count > votes[most]) most = rank;
  }
  return most;
}

bool is_certain(const RankEnd& cause) { return blame_of(cause, 0) == Blame::kOwnReason; }

GroupOutcome outcome_of(const std::vector<RankEnd>& ends, int stop_signal,
                        const std::optional<RankEnd>& cause) {
  GroupOutcome outcome;
  for (const RankEnd& end : ends) {
    outcome.highest_step = std::max(outcome.highest_step, end.progress.step);
    if (is_stopped_as_asked(end, stop_signal)) outcome.exit_code = 128 + stop_signal;
  }
  const RankEnd* late = root_cause(ends, stop_signal);
  if (cause) {
    outcome.cause = cause;
  } else if (late != nullptr) {
    outcome.cause = *late;
  }
  if (outcome.cause) outcome.exit_code = launcher_code(*outcome.cause);
  return outcome;
}

std::string to_json(const GroupOutcome& outcome) {
  json object = {{"exit_code", outcome.exit_code}, {"highest_step", outcome.highest_step}};
  if (outcome.cause) object["cause"] = json_of(*outcome.cause);
  return dumped(object);
}

std::optional<GroupOutcome> outcome_from_json(const std::string& text) {
  return read_json<GroupOutcome>(text, outcome_from);
}

std::string failure_text(const RankEnd& cause) {
  if (cause.rank < 0) {
    return cat("assay launch: lost ", escaped(cause.message),
               ". Fix: see what the launcher and the kernel of that host say\n");
  }
  std::string text =
      cat("assay launch: rank ", cause.rank, " (local rank ", cause.local_rank, ", host ",
          escaped(cause.host), ", pid ", cause.pid, ") ", end_text(cause), ", last finished step ",
          cause.progress.step, ", phase ", phase_name(cause.progress.phase), "\n");
  if (!cause.message.empty()) {
    text += cat("assay launch: rank ", cause.rank, " said: ", escaped(cause.message), "\n");
  }
  return text;
}

}  // namespace assay::launch
