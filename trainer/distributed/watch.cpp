#include "trainer/distributed/watch.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "trainer/distributed/suspects.h"

namespace assay::distributed {
namespace {

using launch::RankPhase;

constexpr double kBeatSeconds = 0.25;
// A rank that learns of another's failure through a broken collective says so itself; the watch
// steps in only where it hears nothing, as with NCCL, whose kernels wait for ever.
constexpr double kFailureGraceSeconds = 3.0;
// On top of the backend's own time-out, which gives the better message.
constexpr double kStallMarginSeconds = 2.0;

}  // namespace

struct Watch::State {
  State(ControlStore own_store, std::vector<RankRecord> all, int64_t rank,
        launch::ProgressPage& own_page, const CollectiveCount& own_count, Settings given)
      : store(std::move(own_store)),
        ranks(std::move(all)),
        own_rank(rank),
        page(own_page),
        count(own_count),
        settings(std::move(given)) {}

  ControlStore store;
  std::vector<RankRecord> ranks;
  int64_t own_rank;
  launch::ProgressPage& page;
  const CollectiveCount& count;
  Settings settings;
  std::mutex mutex;
  std::condition_variable changed;
  bool is_stopping = false;
  int64_t num_beats = 0;
  double failure_seen_at = 0;
  std::atomic<bool> is_ended{false};
  std::thread thread;

  void publish() {
    const launch::RankProgress progress = page.read();
    store.set(beat_key(own_rank), to_json({.number = ++num_beats,
                                           .step = progress.step,
                                           .phase = progress.phase,
                                           .collectives = count.started.load(),
                                           .elements = count.elements.load(),
                                           .planned_elements = count.planned_elements.load(),
                                           .steps_begun = count.steps_begun.load(),
                                           .before_step = count.before_step.load(),
                                           .in_step_before = count.in_step_before.load()}));
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

  // From the watch's thread, or from one of the collective library's that gave up.
  void end(const std::string& message) {
    if (is_ended.exchange(true)) {
      while (true) pause();  // the other thread ends the process
    }
    Suspect suspect{-1, message};
    try {
      suspect = explain_from_store(store, ranks, own_rank, message);
      report_first_failure(
          store, {own_rank, static_cast<int>(ExitCode::kLaunch), suspect.text, suspect.rank});
    } catch (const LaunchError& error) {
      suspect.text = cat(message, " (", error.what(), ")");
    }
    {
      const std::lock_guard lock(mutex);
      if (is_stopping) return;  // the main thread ends the process, and says why
    }
    if (suspect.rank >= 0) page.blame(suspect.rank);
    settings.end_process(suspect.text);
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
    end(error.what());
  }
};

namespace {

std::mutex watched_mutex;
std::shared_ptr<Watch::State> watched;
std::terminate_handler earlier_handler = nullptr;

// Gloo ends the process from a thread of its own when a message has another size than the
// collective that waits for it: some rank has left one out. Who, the ranks' counts say.
[[noreturn]] void end_broken_process() {
  std::string what;
  try {
    if (const auto error = std::current_exception()) std::rethrow_exception(error);
  } catch (const std::exception& error) {
    what = error.what();
  } catch (...) {
    what.clear();
  }
  std::shared_ptr<Watch::State> state;
  {
    const std::lock_guard lock(watched_mutex);
    state = watched;
  }
  if (state != nullptr && what.find("gloo") != std::string::npos) {
    const size_t end = what.find('\n');
    state->end(cat("the ranks' collectives do not fit together: ", what.substr(0, end),
                   ". Fix: see the rank that is named"));
    while (true) pause();  // the main thread was ending the process already
  }
  earlier_handler();
  std::abort();
}

}  // namespace

Watch::Watch(const ControlStore& store, std::vector<RankRecord> ranks, int64_t own_rank,
             launch::ProgressPage& page, const CollectiveCount& count, Settings settings)
    : state_(std::make_shared<State>(store.clone(), std::move(ranks), own_rank, page, count,
                                     std::move(settings))) {
  state_->thread = std::thread([this] { state_->run(); });
  {
    const std::lock_guard lock(watched_mutex);
    watched = state_;
  }
  static const bool is_installed = [] {
    earlier_handler = std::set_terminate(end_broken_process);
    return true;
  }();
  static_cast<void>(is_installed);
}

Watch::~Watch() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->is_stopping = true;
  }
  {
    const std::lock_guard lock(watched_mutex);
    watched.reset();
  }
  state_->changed.notify_all();
  state_->store.give_up();
  state_->thread.join();
}

}  // namespace assay::distributed
