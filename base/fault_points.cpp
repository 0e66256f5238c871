#include "base/fault_points.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include <signal.h>
#include <unistd.h>

#include "base/error.h"
#include "base/text.h"

namespace assay {
namespace {

constexpr auto kPoints = std::to_array<std::string_view>({
    "checkpoint.begin",
    "checkpoint.done",
    "checkpoint.latest.close",
    "checkpoint.latest.fsync",
    "checkpoint.latest.open",
    "checkpoint.latest.rename",
    "checkpoint.latest.sync_parent",
    "checkpoint.latest.write",
    "checkpoint.manifest.close",
    "checkpoint.manifest.fsync",
    "checkpoint.manifest.open",
    "checkpoint.manifest.write",
    "checkpoint.model.close",
    "checkpoint.model.fsync",
    "checkpoint.model.open",
    "checkpoint.model.write",
    "checkpoint.optimizer.close",
    "checkpoint.optimizer.fsync",
    "checkpoint.optimizer.open",
    "checkpoint.optimizer.write",
    "checkpoint.rank.close",
    "checkpoint.rank.fsync",
    "checkpoint.rank.open",
    "checkpoint.rank.write",
    "checkpoint.rename",
    "checkpoint.rotate",
    "checkpoint.state.close",
    "checkpoint.state.fsync",
    "checkpoint.state.open",
    "checkpoint.state.write",
    "checkpoint.sync_dir",
    "checkpoint.sync_parent",
    "config.close",
    "config.fsync",
    "config.open",
    "config.rename",
    "config.sync_parent",
    "config.write",
    "data.read",
    "ddp.bucket",
    "ddp.join",
    "defect.duplicate_log_line",
    "defect.flip_weight",
    "defect.nan_loss",
    "defect.other_weights",
    "defect.repeat_sample",
    "defect.scale_gradient",
    "defect.skip_collective",
    "defect.skip_optimizer_restore",
    "defect.skip_rng_restore",
    "defect.skip_sample",
    "defect.step_off_by_one",
    "defect.wrong_lr_after_resume",
    "defect.wrong_shape",
    "environment.close",
    "environment.fsync",
    "environment.open",
    "environment.rename",
    "environment.sync_parent",
    "environment.write",
    "events.close",
    "events.fsync",
    "events.open",
    "events.write",
    "evidence.close",
    "evidence.fsync",
    "evidence.open",
    "evidence.rename",
    "evidence.sync_parent",
    "evidence.write",
    "facts.close",
    "facts.fsync",
    "facts.open",
    "facts.rename",
    "facts.sync_parent",
    "facts.write",
    "ids.close",
    "ids.fsync",
    "ids.open",
    "ids.write",
    "log.close",
    "log.fsync",
    "log.open",
    "log.write",
    "metrics.close",
    "metrics.fsync",
    "metrics.open",
    "metrics.write",
    "ranks.close",
    "ranks.fsync",
    "ranks.open",
    "ranks.rename",
    "ranks.sync_parent",
    "ranks.write",
    "report.close",
    "report.fsync",
    "report.open",
    "report.rename",
    "report.sync_parent",
    "report.write",
    "result.close",
    "result.fsync",
    "result.open",
    "result.rename",
    "result.sync_parent",
    "result.write",
    "shard.close",
    "shard.fsync",
    "shard.open",
    "shard.rename",
    "shard.sync_parent",
    "shard.write",
    "train.backward",
    "train.eval",
    "train.first_batch",
    "train.forward",
    "train.optimizer",
    "train.step_end",
});
static_assert(std::is_sorted(kPoints.begin(), kPoints.end()));

struct ErrorName {
  std::string_view name;
  int error_number;
};
constexpr auto kErrorNames = std::to_array<ErrorName>({
    {"EACCES", EACCES},
    {"EDQUOT", EDQUOT},
    {"EEXIST", EEXIST},
    {"EFBIG", EFBIG},
    {"EINTR", EINTR},
    {"EINVAL", EINVAL},
    {"EIO", EIO},
    {"EMFILE", EMFILE},
    {"ENOENT", ENOENT},
    {"ENOSPC", ENOSPC},
    {"EROFS", EROFS},
});

enum class ActionKind { kKill, kExit, kThrow, kErrno, kShort, kStall, kStop, kOn };

struct Action {
  ActionKind kind = ActionKind::kKill;
  int number = 0;      // exit code or errno
  double seconds = 0;  // of a stall
};

struct Rule {
  std::string text;
  size_t point = 0;  // index in kPoints
  uint64_t first_hit = 1;
  bool is_repeated = false;
  std::optional<int64_t> rank;  // none: every rank
  Action action;
};

// The armed faults are the process's environment, like its signal mask: one for all threads.
struct Armory {
  std::mutex mutex;
  std::vector<Rule> rules;
  std::array<uint64_t, kPoints.size()> num_hits{};
};

std::atomic<bool> is_armed{false};
std::atomic<int64_t> own_rank{0};

Armory& armory() {
  static Armory instance;
  return instance;
}

std::optional<size_t> index_of(std::string_view name) {
  const auto* found = std::lower_bound(kPoints.begin(), kPoints.end(), name);
  if (found == kPoints.end() || *found != name) return std::nullopt;
  return static_cast<size_t>(found - kPoints.begin());
}

[[noreturn]] void refuse(const std::string& rule, const std::string& problem) {
  throw ConfigError(
      cat("ASSAY_FAULTS: ", quoted(rule), ": ", problem,
          ". Fix: write point[@rank][:hit[+]]=action, e.g. checkpoint.rename:2=kill"));
}

size_t point_of(const std::string& name, const std::string& rule) {
  if (const std::optional<size_t> index = index_of(name)) return *index;
  const std::vector<std::string> names(kPoints.begin(), kPoints.end());
  const std::optional<std::string> nearest = nearest_spelling(name, names);
  refuse(rule, cat("unknown fault point ", quoted(name),
                   nearest ? cat("; did you mean ", quoted(*nearest), "?") : ""));
}

Action errno_action(const std::string& value, const std::string& rule) {
  std::vector<std::string> names;
  for (const ErrorName& known : kErrorNames) {
    if (known.name == value) return {ActionKind::kErrno, known.error_number, 0};
    names.emplace_back(known.name);
  }
  refuse(rule, cat("unknown error ", quoted(value), ", expected one of ", join(names, ", ")));
}

Action parse_action(const std::string& text, const std::string& rule) {
  const size_t colon = text.find(':');
  const std::string verb = text.substr(0, colon);
  const bool has_value = colon != std::string::npos;
  const std::string value = has_value ? text.substr(colon + 1) : "";
  if (has_value && verb == "errno") return errno_action(value, rule);
  if (has_value && verb == "exit") {
    const std::optional<uint64_t> code = parse_uint64(value);
    if (!code || *code > 255) refuse(rule, cat("exit code ", quoted(value), " is not in 0..255"));
    return {ActionKind::kExit, static_cast<int>(*code), 0};
  }
  if (has_value && verb == "stall") {
    constexpr double kLongestStall = 86400;  // a day; longer is surely a slip
    const std::optional<double> seconds = parse_double(value);
    if (!seconds || *seconds < 0 || *seconds > kLongestStall) {
      refuse(rule, cat("stall of ", quoted(value), " is not in 0..86400 seconds"));
    }
    return {ActionKind::kStall, 0, *seconds};
  }
  if (!has_value && verb == "kill") return {ActionKind::kKill, 0, 0};
  if (!has_value && verb == "throw") return {ActionKind::kThrow, 0, 0};
  if (!has_value && verb == "stop") return {ActionKind::kStop, 0, 0};
  if (!has_value && verb == "short") return {ActionKind::kShort, 0, 0};
  if (!has_value && verb == "on") return {ActionKind::kOn, 0, 0};
  refuse(rule,
         cat("unknown action ", quoted(text),
             ", expected kill, stop, exit:CODE, throw, errno:NAME, short, stall:SECONDS or on"));
}

// A fault that its place cannot show would be a test that cannot fail.
void require_fitting(const Rule& rule) {
  const std::string_view point = kPoints[rule.point];
  const bool is_defect = point.starts_with("defect.");
  const bool is_without_call = point.starts_with("train.") || point.starts_with("ddp.") ||
                               point == "checkpoint.begin" || point == "checkpoint.done";
  const bool can_be_short = point.ends_with(".write") || point == "data.read";
  if (is_defect != (rule.action.kind == ActionKind::kOn)) {
    refuse(rule.text, is_defect ? "a planted defect takes the action \"on\" only"
                                : "the action \"on\" is for defect.* points only");
  }
  if (rule.action.kind == ActionKind::kErrno && is_without_call) {
    refuse(rule.text, cat(point, " makes no system call, so that errno cannot fail there"));
  }
  if (rule.action.kind == ActionKind::kShort && !can_be_short) {
    refuse(rule.text, "short is for *.write and data.read points only");
  }
}

Rule parse_rule(const std::string& text) {
  Rule rule;
  rule.text = text;
  const size_t equals = text.find('=');
  if (equals == std::string::npos) refuse(text, "\"=action\" is missing");
  std::string place = text.substr(0, equals);
  rule.action = parse_action(text.substr(equals + 1), text);
  const size_t colon = place.find(':');
  if (colon != std::string::npos) {
    std::string count = place.substr(colon + 1);
    place.resize(colon);
    rule.is_repeated = count.ends_with('+');
    if (rule.is_repeated) count.pop_back();
    const std::optional<uint64_t> hit = parse_uint64(count);
    if (!hit || *hit == 0) refuse(text, cat("hit ", quoted(count), " is not a count from 1 on"));
    rule.first_hit = *hit;
  }
  const size_t at = place.find('@');
  if (at != std::string::npos) {
    const std::optional<int64_t> rank = parse_int64(place.substr(at + 1));
    if (!rank || *rank < 0) {
      refuse(text, cat("rank ", quoted(place.substr(at + 1)), " is not a number from 0 on"));
    }
    rule.rank = *rank;
    place.resize(at);
  }
  rule.point = point_of(place, text);
  require_fitting(rule);
  return rule;
}

void perform(const Rule& rule, uint64_t hit, FaultOutcome& outcome) {
  switch (rule.action.kind) {
    case ActionKind::kKill:
      ::kill(::getpid(), SIGKILL);
      while (true) ::pause();  // nothing may happen after the kill, however late it arrives
    case ActionKind::kStop:
      ::kill(::getpid(), SIGSTOP);
      break;
    case ActionKind::kExit:
      ::_exit(rule.action.number);
    case ActionKind::kThrow:
      throw InternalError(cat("injected fault at ", kPoints[rule.point], ", hit ", hit));
    case ActionKind::kErrno:
      outcome.error_number = rule.action.number;
      break;
    case ActionKind::kShort:
      outcome.is_short = true;
      break;
    case ActionKind::kStall:
      std::this_thread::sleep_for(std::chrono::duration<double>(rule.action.seconds));
      break;
    case ActionKind::kOn:
      outcome.is_due = true;
      break;
  }
}

}  // namespace

FaultOutcome fault_point(std::string_view name) {
  if (!are_faults_armed()) return {};
  const std::optional<size_t> point = index_of(name);
  if (!point) throw InternalError(cat("fault point ", quoted(name), " is missing in the table"));
  std::vector<Rule> due;
  uint64_t hit = 0;
  {
    Armory& armed = armory();
    const std::lock_guard lock(armed.mutex);
    hit = ++armed.num_hits[*point];
    for (const Rule& rule : armed.rules) {
      const bool is_due = rule.is_repeated ? hit >= rule.first_hit : hit == rule.first_hit;
      const bool is_for_us = !rule.rank || *rule.rank == own_rank.load();
      if (rule.point == *point && is_due && is_for_us) due.push_back(rule);
    }
  }
  FaultOutcome outcome;
  for (const Rule& rule : due) perform(rule, hit, outcome);
  return outcome;
}

bool is_fault_due(std::string_view name) { return fault_point(name).is_due; }

std::span<const std::string_view> known_fault_points() { return kPoints; }

bool are_faults_armed() { return is_armed.load(std::memory_order_relaxed); }

void arm_faults(std::string_view specification) {
  std::vector<Rule> rules;
  for (const std::string& part : split(specification, ';')) {
    const std::string text = trimmed(part);
    if (!text.empty()) rules.push_back(parse_rule(text));
  }
  Armory& armed = armory();
  const std::lock_guard lock(armed.mutex);
  armed.num_hits.fill(0);
  armed.rules = std::move(rules);
  is_armed.store(!armed.rules.empty(), std::memory_order_relaxed);
}

void set_fault_rank(int64_t rank) { own_rank.store(rank); }

void disarm_faults() { arm_faults(""); }

void arm_faults_from_environment() {
  const char* specification = std::getenv("ASSAY_FAULTS");
  arm_faults(specification == nullptr ? "" : specification);
}

std::vector<std::string> armed_faults() {
  Armory& armed = armory();
  const std::lock_guard lock(armed.mutex);
  std::vector<std::string> texts;
  for (const Rule& rule : armed.rules) texts.push_back(rule.text);
  return texts;
}

}  // namespace assay
