#include "trainer/train_command.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>

#include <c10/util/Exception.h>
#include <torch/torch.h>
#include <torch/version.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/digest.h"
#include "base/error.h"
#include "base/fault_points.h"
#include "base/files.h"
#include "base/text.h"
#include "base/version.h"
#include "checkpoints/layout.h"
#include "trainer/config/config_io.h"
#include "trainer/distributed/process_group.h"
#include "trainer/rank_setup.h"
#include "trainer/run/environment_file.h"
#include "trainer/run/run_folder.h"
#include "trainer/run/run_start.h"
#include "trainer/run/start_message.h"
#include "trainer/run/stop_signal.h"
#include "trainer/run_folder_start.h"
#include "trainer/run_setup.h"
#include "trainer/step/device.h"
#include "trainer/step/device_batch.h"
#include "trainer/training_loop.h"

namespace assay::trainer {
namespace {

using distributed::World;

// How long the ranks may differ in opening their data and building their state.
constexpr double kOpenSeconds = 1800;

// An error that came out of a collective, so that its cause may lie with another rank: c10d's own,
// and what Gloo throws, which is no c10::Error.
bool may_come_from_others(const std::exception& error) {
  if (dynamic_cast<const Error*>(&error) != nullptr) {
    return exit_code_of(error) == ExitCode::kLaunch;
  }
  if (dynamic_cast<const c10::DistError*>(&error) != nullptr) return true;
  return dynamic_cast<const c10::Error*>(&error) == nullptr &&
         dynamic_cast<const FileError*>(&error) == nullptr;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

// One `train` session of one rank: everything it owns, built top to bottom.
class Session {
 public:
  Session(std::span<const std::string> words, const std::vector<std::string>& command,
          const launch::RankEnv& rank_env, Logger& log)
      : words_(words),
        command_(command),
        env_(rank_env),
        log_(log),
        page_(launch::ProgressPage::from_environment()) {}

  int run() {
    const config::ParsedArguments own = config::peek_train_arguments(words_);
    distributed::WorldSettings settings;
    settings.join_timeout_seconds = own.config.ddp.join_timeout_seconds;
    settings.collective_timeout_seconds = own.config.ddp.timeout_seconds;
    settings.end_process = [this](const std::string& message) { end_hung_process(message); };
    World world = World::join(env_, settings, rank_record(env_, own.config), page_, log_);
    is_root_ = world.is_root();
    try {
      const int code = run_as_rank(world, own);
      world.leave();
      return code;
    } catch (const std::exception& error) {
      throw_explained(world, error);
    }
  }

 private:
  // Says who is to blame, tells the others, and throws what this rank ends with.
  [[noreturn]] void throw_explained(World& world, const std::exception& error) {
    const std::string text = describe_exception(error);
    const int code = static_cast<int>(exit_code_of(error));
    if (!world.is_distributed() || !may_come_from_others(error)) {
      world.report_failure(text, code);
      write_failure(text, exit_code_of(error));
      world.linger();
      throw;
    }
    const LaunchError explained(world.explain(first_line(text)));
    world.report_failure(explained.what(), static_cast<int>(ExitCode::kLaunch));
    write_failure(explained.what(), ExitCode::kLaunch);
    world.linger();
    throw explained;
  }

  int run_as_rank(World& world, const config::ParsedArguments& own) {
    run::RunStart start;  // rank 0's
    run::StartMessage message;
    std::string fingerprint;
    world.agree(
        "start", World::Who::kRootOnly,
        [&] {
          start = run::decide_start(words_, env_.restart_count > 0, world.size());
          message = describe_start(start);
          fingerprint = run::folder_fingerprint(start.config.output_dir);
        },
        kOpenSeconds);
    message = run::start_message_from_json(world.broadcast_text("decision", run::to_json(message)));
    if (!world.is_root()) take_local_settings(message.config, own);
    config::RunConfig config = lasting(message.config);
    c10::Device device(c10::kCPU);
    std::optional<data::OpenedData> data;
    std::optional<data::Sampler> sampler;
    world.agree(
        "data", World::Who::kEveryRank,
        [&] {
          // fp64 is for proofs on the CPU; `auto` means that there.
          device = step::choose_device(config.precision == "fp64" ? "cpu" : config.device,
                                       env_.local_rank, config.ddp.backend == "gloo");
          data.emplace(open_run_data(config));
          sampler.emplace(sampler_config(config, *data, world));
        },
        kOpenSeconds);
    check_same_data(world, *data);
    const int64_t target = target_steps(config, *sampler);
    world.agree(
        "folder", World::Who::kRootOnly,
        [&] { folder_ = take_folder(start, fingerprint, *data, target, log_); }, kOpenSeconds);
    const std::string run_dir = world.broadcast_text("run folder", folder_.run_dir);
    if (run_dir.empty()) return 0;  // complete: rank 0 has said so
    config.output_dir = world.is_root() ? start.config.output_dir : run_dir;
    world.agree("log", World::Who::kEveryRank, [&] {
      create_directories(config.output_dir);
      log_.open_file(join_path(config.output_dir, cat("log-rank", world.rank(), ".txt")));
    });
    run_dir_ = config.output_dir;
    for (const std::string& note : start.notes) log_.info(note);
    for (const std::string& note : folder_.notes) log_.info(note);
    try {
      return train(world, config, message, start, *data, *sampler, device, target);
    } catch (const FileError& error) {
      throw CheckpointError(
          cat("the run folder cannot be used: ", error.what(),
              ". Fix: make room or permissions, then --resume_from_checkpoint auto"));
    }
  }

  static run::StartMessage describe_start(const run::RunStart& start) {
    run::StartMessage message;
    message.config = start.config;
    message.config.output_dir =
        std::filesystem::absolute(start.config.output_dir).lexically_normal().string();
    message.schedule_total_steps = start.schedule_total_steps;
    if (start.kind != run::StartKind::kResume) return message;
    message.checkpoint_path = start.checkpoint->path;
    message.trainer = start.checkpoint->trainer;
    message.ranks = start.checkpoint->ranks;
    return message;
  }

  // Where a host keeps its data and how much of it a rank takes is that rank's own business.
  static void take_local_settings(config::RunConfig& config, const config::ParsedArguments& own) {
    const auto is_given = [&](std::string_view key) {
      return std::find(own.given.begin(), own.given.end(), key) != own.given.end();
    };
    if (is_given("data.directory")) config.data.directory = own.config.data.directory;
    if (is_given("data.num_workers")) config.data.num_workers = own.config.data.num_workers;
    if (is_given("num_threads")) config.num_threads = own.config.num_threads;
    if (is_given("device")) config.device = own.config.device;
  }

  static void check_same_data(World& world, const data::OpenedData& data) {
    const std::vector<std::string> digests = world.gather_texts("data digest", data.digest);
    for (size_t r = 1; r < digests.size(); ++r) {
      if (digests[r] == digests.front()) continue;
      throw DataError(cat("the ranks' data differ: ", data.name, " has digest ", digests.front(),
                          " on ", distributed::rank_text(world.ranks().front()), ", ", digests[r],
                          " on ", distributed::rank_text(world.ranks()[r]),
                          ". Fix: the same files at --data_dir on every host"));
    }
  }

  static int64_t local_ranks(const World& world) {
    const auto& own = world.ranks()[static_cast<size_t>(world.rank())];
    return std::count_if(world.ranks().begin(), world.ranks().end(), [&](const auto& other) {
      return other.host_identity == own.host_identity;
    });
  }

  int train(World& world, const config::RunConfig& config, const run::StartMessage& message,
            run::RunStart& start, const data::OpenedData& data, const data::Sampler& sampler,
            const c10::Device& device, int64_t target) {
    page_.set_phase(launch::RankPhase::kLoading);
    step::apply_numeric_settings(config, device, local_ranks(world));
    launch::RankEnv place = env_;
    place.local_world_size = local_ranks(world);
    const int64_t workers = worker_count(config, device, place);
    world.connect(config.ddp.backend, device);
    has_nccl_ = world.backend() == "nccl";
    world.agree("record", World::Who::kRootOnly,
                [&] { record_environment(world, config, data, device, workers); });
    config::RunConfig initial = config;
    // A resumed run's weights come from its checkpoint; the file may be gone.
    if (!message.checkpoint_path.empty()) initial.model.init_from.clear();
    step::TrainState state = step::make_initial_state(initial, device, target, world);
    state.run_id = world.broadcast_text("run id", sha256_hex(cat(utc_timestamp(), config.output_dir,
                                                                 process_age_seconds(), getpid())));
    std::unique_ptr<data::HostMemory> pinned;
    if (device.is_cuda() && config.data.pin_memory) pinned = std::make_unique<step::PinnedMemory>();
    data::DataLoader loader(
        *data.train, sampler,
        {.num_workers = workers, .prefetch_factor = config.data.prefetch_factor},
        pinned ? *pinned : data::ordinary_memory());
    std::string digest;
    if (!message.checkpoint_path.empty()) {
      const step::ResumePoint point{message.checkpoint_path, message.trainer, message.ranks};
      step::restore(state, point, start.checkpoint ? &*start.checkpoint : nullptr, config, device,
                    world);
      state.schedule.total_steps = horizon(config, message.schedule_total_steps, target);
      if (start.checkpoint) digest = start.checkpoint->manifest.state_digest;
    }
    share_batch_norms(world, config, sampler, state);
    const std::unique_ptr<distributed::GradientReducer> reducer =
        make_reducer(world, config, state);
    describe(world, config, data, state, device, target);
    const LoopContext context{config, data,   sampler,    loader,
                              device, target, versions(), {world, page_, reducer.get()},
                              log_};
    LoopResult result;
    try {
      result = run_training(context, state);
    } catch (...) {
      failed_step_ = state.counters.step;
      failed_loss_ = state.last_loss;
      throw;
    }
    if (result.state_digest.empty()) result.state_digest = digest;
    return finish(world, config, state, result, target);
  }

  void record_environment(const World& world, const config::RunConfig& config,
                          const data::OpenedData& data, const c10::Device& device,
                          int64_t workers) const {
    run::write_environment({
        .run_dir = config.output_dir,
        .command = command_,
        .device = device.str(),
        .world_size = world.size(),
        .num_threads = at::get_num_threads(),
        .num_workers = workers,
        .versions = versions(),
        .data = {{"name", data.name},
                 {"digest", data.digest},
                 {"train_samples", cat(data.train->size())},
                 {"eval_samples", cat(data.eval->size())}},
    });
  }

  void describe(const World& world, const config::RunConfig& config, const data::OpenedData& data,
                const step::TrainState& state, const c10::Device& device, int64_t target) const {
    const std::string ranks =
        world.is_distributed() ? cat(", ", world.size(), " rank(s) over ", world.backend()) : "";
    log_.info(cat(config.model.name, " (", models::parameter_count(state.model), " parameters) on ",
                  data.name, " (", data.train->size(), " samples, ", data.eval->size(),
                  " held out), ", device.str(), ranks, ", ", config.precision,
                  config.deterministic ? ", deterministic" : "", ", global batch ",
                  config.batch_size * config.gradient_accumulation_steps * world.size(), ", steps ",
                  state.counters.step, " to ", target, ", run folder ", config.output_dir));
  }

  int finish(const World& world, const config::RunConfig& config, const step::TrainState& state,
             const LoopResult& loop, int64_t target) const {
    run::RunResult result;
    result.status = loop.stop_signal == 0 ? "completed" : "stopped";
    result.final_step = state.counters.step;
    result.final_loss = state.last_loss;
    result.state_digest = loop.state_digest;
    result.stop_reason = loop.stop_signal == 0 ? cat("step ", target, " reached")
                                               : run::signal_name(loop.stop_signal);
    result.exit_code = loop.stop_signal == 0 ? 0 : 128 + loop.stop_signal;
    result.wall_seconds = process_age_seconds();
    result.startup_seconds = loop.startup_seconds;
    if (!world.is_root()) return result.exit_code;
    write_file_durably(join_path(config.output_dir, run::kResultFile), run::to_json(result),
                       "result");
    log_.info(cat(result.status, " at step ", result.final_step, " of ", target, " (",
                  result.stop_reason, "), loss ", result.final_loss, ", state ",
                  result.state_digest.substr(0, 16)));
    return result.exit_code;
  }

  // Only rank 0's account of the run counts, and only once the folder is this run's.
  void write_failure(const std::string& reason, ExitCode code) const {
    if (!is_root_ || run_dir_.empty()) return;
    run::RunResult result;
    result.status = code == ExitCode::kDiverged ? "diverged" : "failed";
    result.stop_reason = reason;
    result.exit_code = static_cast<int>(code);
    result.wall_seconds = process_age_seconds();
    result.final_step = failed_step_;
    result.final_loss = failed_loss_;
    try {
      const auto entries = checkpoints::list_checkpoints(run_dir_);
      if (!entries.empty()) {
        const std::string manifest = join_path(entries.back().path, checkpoints::kManifestFile);
        result.state_digest =
            checkpoints::manifest_from_json(read_file(manifest), manifest).state_digest;
      }
      write_file_durably(join_path(run_dir_, run::kResultFile), run::to_json(result), "result");
    } catch (const std::exception& second) {
      // A full or vanished disk: the first error is the one to report.
      std::fprintf(stderr, "assay: result.json could not be written either: %s\n", second.what());
    }
  }

  // From the watch's thread: the main one is inside a collective that will not end.
  [[noreturn]] void end_hung_process(const std::string& message) const {
    failed_step_ = page_.read().step;
    std::fprintf(stderr, "assay: %s\n", message.c_str());
    write_failure(message, ExitCode::kLaunch);
    launch::write_error_file(env_.error_file, message);
    save_flight_record();
    std::fflush(nullptr);
    _exit(static_cast<int>(ExitCode::kLaunch));
  }

  void save_flight_record() const {
    if (!has_nccl_) return;
    try {
      const std::string record = distributed::nccl_flight_record();
      if (record.empty() || run_dir_.empty()) return;
      write_file_durably(join_path(run_dir_, cat("flight-record-rank", env_.rank, ".json")), record,
                         "result");
    } catch (const std::exception& error) {
      std::fprintf(stderr, "assay: no flight record: %s\n", error.what());
    }
  }

  std::span<const std::string> words_;
  const std::vector<std::string>& command_;
  const launch::RankEnv& env_;
  Logger& log_;
  launch::ProgressPage page_;
  bool is_root_ = true;
  bool has_nccl_ = false;
  TakenFolder folder_;               // rank 0
  std::string run_dir_;              // empty until the folder is this run's
  mutable int64_t failed_step_ = 0;  // for result.json, if training throws
  double failed_loss_ = NAN;
};

}  // namespace

int run_train_command(std::span<const std::string> words, const std::vector<std::string>& command,
                      const launch::RankEnv& rank_env, Logger& log) {
  set_fault_rank(rank_env.rank);
  return Session(words, command, rank_env, log).run();
}

std::string trainer_version_text() {
  return cat(
      "assay-train ", version_string(), " (commit ", git_commit(), "), LibTorch ", TORCH_VERSION,
      build_cuda_version().empty() ? ", no CUDA" : cat(", CUDA ", build_cuda_version()), "\n");
}

}  // namespace assay::trainer
