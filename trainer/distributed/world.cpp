#include "trainer/distributed/world.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/comm.hpp>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/fault_points.h"
#include "base/text.h"
#include "trainer/distributed/control_store.h"
#include "trainer/distributed/process_group.h"
#include "trainer/distributed/world_impl.h"
#include "trainer/launch/address.h"

namespace assay::distributed {
namespace {

using launch::RankPhase;

// Rank 0 speaks for all when someone is missing; the others give it time to.
constexpr double kVerdictGraceSeconds = 5.0;
constexpr double kLingerSeconds = 0.5;
constexpr double kLastWordSeconds = 1.8;  // for an answer of the store to a rank that ends
constexpr const char* kArrivals = "arrivals";
constexpr const char* kRoster = "roster";

std::vector<RankRecord> read_arrivals(ControlStore& store) {
  std::vector<RankRecord> arrived;
  for (const std::string& line : split(store.find(kArrivals).value_or(""), '\n')) {
    if (!line.empty()) arrived.push_back(rank_record_from_json(line));
  }
  return arrived;
}

// Rank 0: waits until all are there, as long as one after the other arrives.
std::vector<RankRecord> await_arrivals(ControlStore& store, const WorldSettings& settings,
                                       int64_t world_size) {
  size_t num_seen = 0;
  double last_arrival = monotonic_seconds();
  while (true) {
    std::vector<RankRecord> arrived = read_arrivals(store);
    const std::string problem = disagreement(arrived);
    if (!problem.empty()) throw LaunchError(problem);
    const std::string missing = missing_ranks(arrived, world_size);
    if (missing.empty()) return arrived;
    if (arrived.size() > num_seen) last_arrival = monotonic_seconds();
    num_seen = arrived.size();
    if (monotonic_seconds() - last_arrival > settings.join_timeout_seconds) {
      throw LaunchError(cat("rank(s) ", missing, " of ", world_size, " did not arrive within ",
                            settings.join_timeout_seconds,
                            " s. Fix: see why they did not start, or raise --ddp_join_timeout"));
    }
    usleep(10'000);
  }
}

std::string roster_text(std::vector<RankRecord> arrived) {
  std::sort(arrived.begin(), arrived.end(),
            [](const RankRecord& a, const RankRecord& b) { return a.rank < b.rank; });
  nlohmann::json roster = nlohmann::json::array();
  for (const RankRecord& record : arrived) roster.push_back(to_json(record));
  return nlohmann::json{{"ranks", roster}}.dump();
}

std::vector<RankRecord> roster_from(const std::string& text) {
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || json.contains("problem")) {
    throw LaunchError(json.is_object() ? json["problem"].get<std::string>()
                                       : "the job's store holds something else than a roster");
  }
  std::vector<RankRecord> ranks;
  for (const auto& entry : json.at("ranks")) {
    ranks.push_back(rank_record_from_json(entry.get<std::string>()));
  }
  return ranks;
}

std::vector<RankRecord> hold_roll_call(ControlStore& store, const WorldSettings& settings,
                                       const RankRecord& own) {
  store.append(kArrivals, to_json(own) + "\n");
  if (own.rank == 0) {
    try {
      store.set(kRoster, roster_text(await_arrivals(store, settings, own.world_size)));
    } catch (const LaunchError& error) {
      store.set(kRoster, nlohmann::json{{"problem", error.what()}}.dump());
      usleep(500'000);  // the others read it before the store closes
      throw;
    }
  }
  // A rank that another disagrees with need not be counted by rank 0 at all: each looks itself too.
  std::string problem;
  const auto is_over = [&] {
    problem = disagreement(read_arrivals(store));
    return !problem.empty();
  };
  const double limit = settings.join_timeout_seconds * 2 + kVerdictGraceSeconds;
  const auto roster = store.wait_for(kRoster, limit, is_over);
  if (!problem.empty()) throw LaunchError(problem);
  if (!roster) {
    throw LaunchError(cat(rank_text(own), " waited ", limit,
                          " s for the other ranks in vain. Fix: see what rank 0 says"));
  }
  return roster_from(*roster);
}

}  // namespace

World::World(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
World::World(World&&) noexcept = default;
World::~World() = default;

bool needs_world(const launch::RankEnv& env) {
  return env.world_size > 1 || (env.source == "torchrun" && env.master_port > 0);
}

World World::join(const launch::RankEnv& env, const WorldSettings& settings, const RankRecord& own,
                  launch::ProgressPage& page, Logger& log) {
  auto impl = std::make_unique<Impl>();
  impl->rank = env.rank;
  impl->size = env.world_size;
  impl->settings = settings;
  impl->log = &log;
  impl->page = &page;
  if (!needs_world(env)) {
    impl->ranks = {own};
    return World(std::move(impl));
  }
  page.set_phase(RankPhase::kJoining);
  fault_point("ddp.join");
  impl->store = ControlStore::open(env, settings.join_timeout_seconds);
  impl->ranks = hold_roll_call(*impl->store, settings, own);
  const ControlStore patient = impl->store->with_limit(settings.collective_timeout_seconds);
  impl->store.emplace(patient);
  impl->watch =
      std::make_unique<Watch>(*impl->store, impl->ranks, impl->rank, page, impl->count,
                              Watch::Settings{settings.collective_timeout_seconds,
                                              settings.save_timeout_seconds, settings.end_process});
  return World(std::move(impl));
}

World World::alone() {
  auto impl = std::make_unique<Impl>();
  impl->ranks.resize(1);
  return World(std::move(impl));
}

World World::in_role(int64_t rank, int64_t size, launch::ProgressPage& page) {
  auto impl = std::make_unique<Impl>();
  impl->rank = rank;
  impl->size = size;
  impl->page = &page;
  impl->ranks.resize(1);  // nobody else is there
  impl->group = make_role_group(static_cast<int>(rank), static_cast<int>(size));
  impl->backend = "role";
  return World(std::move(impl));
}

int64_t World::rank() const { return impl_->rank; }
int64_t World::size() const { return impl_->size; }
bool World::is_distributed() const { return impl_->store.has_value(); }
const std::vector<RankRecord>& World::ranks() const { return impl_->ranks; }
std::string World::backend() const { return impl_->backend; }
const c10::intrusive_ptr<c10d::ProcessGroup>& World::group() const { return impl_->group; }

std::string World::broadcast_text(const std::string& topic, const std::string& text_of_root,
                                  double timeout_seconds) {
  if (!is_distributed()) return text_of_root;
  const std::string key = cat("said/", impl_->num_meetings++, "/", topic);
  if (is_root()) {
    impl_->store->set(key, text_of_root);
    return text_of_root;
  }
  return impl_->await(topic, key, impl_->limit_of(timeout_seconds) + kVerdictGraceSeconds,
                      impl_->name(impl_->ranks.front()));
}

std::vector<std::string> World::gather_texts(const std::string& topic, const std::string& text,
                                             double timeout_seconds) {
  if (!is_distributed()) return {text};
  const std::string key = cat("met/", impl_->num_meetings++, "/", topic, "/");
  const double limit = impl_->limit_of(timeout_seconds);
  std::vector<std::string> texts;
  impl_->store->set(cat(key, rank()), text);
  if (is_root()) {
    const double deadline = monotonic_seconds() + limit;
    nlohmann::json all = nlohmann::json::array();
    for (const RankRecord& record : impl_->ranks) {
      const double left = std::max(deadline - monotonic_seconds(), 0.0);
      const std::string rank_key = cat(key, record.rank);
      texts.push_back(impl_->await(topic, rank_key, left, impl_->name(record)));
      all.push_back(texts.back());
      impl_->store->remove(rank_key);
    }
    impl_->store->set(cat(key, "all"),
                      all.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    return texts;
  }
  const std::string all = impl_->await(topic, cat(key, "all"), limit + kVerdictGraceSeconds,
                                       impl_->name(impl_->ranks.front()));
  for (const auto& entry : nlohmann::json::parse(all)) texts.push_back(entry.get<std::string>());
  return texts;
}

void World::meet(const std::string& topic, double timeout_seconds) {
  gather_texts(topic, "", timeout_seconds);
}

void World::agree(const std::string& topic, Who who, const std::function<void()>& work,
                  double timeout_seconds) {
  if (!is_distributed()) {
    work();
    return;
  }
  std::exception_ptr mine;
  std::string status;
  if (who == Who::kEveryRank || is_root()) {
    try {
      work();
    } catch (const std::exception& error) {
      mine = std::current_exception();
      status = cat(static_cast<int>(exit_code_of(error)), " ", describe_exception(error));
    }
  }
  const std::vector<std::string> all =
      who == Who::kEveryRank ? gather_texts(topic, status, timeout_seconds)
                             : std::vector{broadcast_text(topic, status, timeout_seconds)};
  if (mine) std::rethrow_exception(mine);
  for (size_t r = 0; r < all.size(); ++r) {
    if (all[r].empty()) continue;
    const size_t space = all[r].find(' ');
    impl_->page->blame(static_cast<int64_t>(r));
    throw Error(static_cast<ExitCode>(parse_int64(all[r].substr(0, space)).value_or(1)),
                cat(impl_->name(impl_->ranks[r]), " failed: ", all[r].substr(space + 1)));
  }
}

void World::all_reduce(at::Tensor tensor, Reduction reduction) {
  const at::NoGradGuard no_grad;
  if (!impl_->group) return;
  count_collective(tensor.numel(), tensor.numel());
  c10d::AllreduceOptions options;
  options.reduceOp = reduction == Reduction::kSum ? c10d::ReduceOp::SUM : c10d::ReduceOp::MAX;
  std::vector<at::Tensor> tensors = {std::move(tensor)};
  impl_->group->allreduce(tensors, options)->wait();
}

std::function<void()> World::start_all_reduce(at::Tensor tensor) {
  if (!impl_->group) return [] {};
  count_collective(tensor.numel(), tensor.numel());
  std::vector<at::Tensor> tensors = {std::move(tensor)};
  return [work = impl_->group->allreduce(tensors)] { work->wait(); };
}

void World::broadcast(const std::vector<at::Tensor>& tensors, int64_t root) {
  const at::NoGradGuard no_grad;
  if (!impl_->group || tensors.empty()) return;
  constexpr size_t kBufferBytes = size_t{64} << 20;
  int64_t elements = 0;
  for (const at::Tensor& tensor : tensors) elements += tensor.numel();
  count_collective(elements, elements);
  c10d::broadcast_coalesced(impl_->group, tensors, kBufferBytes, static_cast<int>(root));
}

void World::send(const at::Tensor& tensor, int64_t to) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> tensors = {tensor.to(impl_->carrier).contiguous()};
  impl_->group->send(tensors, static_cast<int>(to), /*tag=*/0)->wait();
}

void World::receive(const at::Tensor& tensor, int64_t from) {
  const at::NoGradGuard no_grad;
  const bool is_direct = tensor.is_contiguous() && tensor.device() == impl_->carrier;
  const at::Tensor landing =
      is_direct ? tensor : at::empty(tensor.sizes(), tensor.options().device(impl_->carrier));
  std::vector<at::Tensor> tensors = {landing};
  impl_->group->recv(tensors, static_cast<int>(from), /*tag=*/0)->wait();
  if (!is_direct) tensor.copy_(landing);
}

void World::report_failure(const std::string& message, int exit_code) noexcept {
  if (!is_distributed() || std::exchange(impl_->has_reported, true)) return;
  try {
    ControlStore quick = impl_->store->with_limit(kLastWordSeconds);
    report_first_failure(quick, {rank(), exit_code, message, impl_->blamed_rank});
  } catch (const std::exception&) {
    return;  // rank 0 is gone; this rank says its own reason on stderr
  }
}

std::string World::explain(const std::string& message) noexcept {
  if (!is_distributed() || impl_->blamed_rank >= 0) return message;  // it says who already
  try {
    return impl_->explained(message);
  } catch (const std::exception& error) {
    return is_root() ? message : cat(impl_->name(impl_->ranks.front()), " is gone. ", message);
  }
}

void World::count_collective(int64_t elements, int64_t planned_elements) {
  impl_->count.elements.store(elements, std::memory_order_relaxed);
  impl_->count.planned_elements.store(planned_elements, std::memory_order_relaxed);
  impl_->count.started.fetch_add(1, std::memory_order_relaxed);
}

void World::begin_step() {
  CollectiveCount& count = impl_->count;
  const int64_t started = count.started.load(std::memory_order_relaxed);
  const int64_t before = count.before_step.exchange(started, std::memory_order_relaxed);
  count.in_step_before.store(started - before, std::memory_order_relaxed);
  count.steps_begun.fetch_add(1, std::memory_order_relaxed);
}

void World::linger() noexcept {
  if (!is_distributed()) return;
  try {
    ControlStore quick = impl_->store->with_limit(kLastWordSeconds);
    quick.add("left", 1);
    if (!is_root()) return;
    const double deadline = monotonic_seconds() + kLingerSeconds;
    while (quick.add("left", 0) < size() && monotonic_seconds() < deadline) usleep(5000);
  } catch (const std::exception&) {
    return;  // there is no store to keep
  }
}

void World::leave() {
  if (!is_distributed()) return;
  impl_->page->set_phase(RankPhase::kEnding);
  meet("end", impl_->settings.save_timeout_seconds);
  impl_->watch.reset();
  // Rank 0 keeps the store open until the others have read its answer.
  impl_->store->add("left", 1);
  if (is_root()) {
    const double deadline = monotonic_seconds() + kVerdictGraceSeconds;
    while (impl_->store->add("left", 0) < size() && monotonic_seconds() < deadline) usleep(1000);
  }
  impl_->group.reset();
}

}  // namespace assay::distributed
