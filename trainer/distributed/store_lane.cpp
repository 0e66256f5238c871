#include "trainer/distributed/store_lane.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace assay::distributed {
namespace {

// Time is counted in slices, so that the hours of a suspended process count as one of them.
constexpr double kSliceSeconds = 0.25;

struct Job {
  std::function<void()> work;
  bool is_done = false;
  std::exception_ptr error;
};

}  // namespace

struct StoreLane::State {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::shared_ptr<Job>> waiting;
  bool is_given_up = false;
  bool is_closing = false;

  void serve() {
    std::unique_lock lock(mutex);
    while (true) {
      changed.wait(lock, [this] { return is_closing || is_given_up || !waiting.empty(); });
      if (is_closing || is_given_up) return;
      const std::shared_ptr<Job> job = std::move(waiting.front());
      waiting.pop_front();
      lock.unlock();
      try {
        job->work();
      } catch (...) {
        job->error = std::current_exception();
      }
      lock.lock();
      job->is_done = true;
      changed.notify_all();
    }
  }
};

StoreLane::StoreLane() : state_(std::make_shared<State>()) {
  std::thread([state = state_] { state->serve(); }).detach();
}

StoreLane::~StoreLane() {
  const std::lock_guard lock(state_->mutex);
  state_->is_closing = true;
  state_->changed.notify_all();
}

void StoreLane::run(std::function<void()> work, double limit_seconds) {
  const auto job = std::make_shared<Job>();
  job->work = std::move(work);
  std::unique_lock lock(state_->mutex);
  if (!state_->is_given_up) state_->waiting.push_back(job);
  state_->changed.notify_all();
  double waited = 0;
  while (!job->is_done) {
    if (state_->is_given_up || waited >= limit_seconds) {
      state_->is_given_up = true;
      state_->changed.notify_all();
      throw LaunchError(cat("no answer within ", limit_seconds, " s"));
    }
    const double slice = std::min(kSliceSeconds, limit_seconds - waited);
    state_->changed.wait_for(lock, std::chrono::duration<double>(slice),
                             [&] { return job->is_done || state_->is_given_up; });
    waited += slice;
  }
  if (job->error) std::rethrow_exception(job->error);
}

void StoreLane::give_up() {
  const std::lock_guard lock(state_->mutex);
  state_->is_given_up = true;
  state_->changed.notify_all();
}

}  // namespace assay::distributed
