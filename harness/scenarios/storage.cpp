// storage (mission B11): can this disk take the checkpoints to come, and how fast?
#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "checkpoints/layout.h"
#include "checkpoints/reader.h"
#include "harness/disk_use.h"
#include "harness/run_folder.h"
#include "harness/scenarios/scenario.h"
#include "trainer/config/config_io.h"
#include "trainer/metrics/step_record.h"

namespace assay::harness {
namespace {

const std::string kWritable = "storage.durable_write";
const std::string kSpeed = "storage.write_speed";
const std::string kProbe = "storage.checkpoint_verifies";
const std::string kRoom = "storage.room";
const std::string kInodes = "storage.inodes";
const std::string kSaveTime = "storage.save_time";
const std::string kDataDisk = "storage.not_root_disk";
const std::string kFill = "storage.disk_fill";

void judge_durable_write(const std::string& folder, Recorder& recorder) {
  const std::string path = join_path(folder, "durable-write-probe");
  std::string problem;
  const double start = monotonic_seconds();
  try {
    write_file_durably(path, "first", "evidence");
    write_file_durably(path, "second", "evidence");
    if (read_file(path) != "second") problem = "the file read back is not what was written last";
  } catch (const FileError& error) {
    problem = error.what();
  }
  const double seconds = (monotonic_seconds() - start) / 2;
  remove_file(path);
  recorder.judge(
      problem.empty(),
      {.check = kWritable,
       .measured = seconds * 1000,
       .unit = "ms",
       .reason = problem.empty() ? std::string("write, fsync, rename and fsync of the folder work")
                                 : cat(problem,
                                       ". Fix: another --output, on a disk that can be "
                                       "written")});
}

void judge_write_speed(const std::string& folder, Recorder& recorder) {
  const std::string path = join_path(folder, "write-speed-probe");
  const int64_t megabytes = std::max<int64_t>(1, recorder.count("write_megabytes"));
  // Not zeros: some disks and file systems compress them away.
  std::string block(1 << 20, '\0');
  uint64_t word = 0x9e3779b97f4a7c15u;
  for (char& byte : block) {
    word = word * 6364136223846793005u + 1442695040888963407u;
    byte = static_cast<char>(word >> 56);
  }
  try {
    remove_file(path);
    const double start = monotonic_seconds();
    FileWriter writer(path, "evidence");
    for (int64_t i = 0; i < megabytes; ++i) writer.write(block);
    writer.sync();
    writer.close();
    const double seconds = monotonic_seconds() - start;
    const double rate = static_cast<double>(megabytes) * 1048576e-6 / std::max(seconds, 1e-9);
    recorder.at_least({.check = kSpeed,
                       .measured = rate,
                       .unit = "MB/s",
                       .reason = cat("sequential write of ", megabytes, " MiB with fsync took ",
                                     duration_text(seconds))});
  } catch (const FileError& error) {
    recorder.judge(false, {.check = kSpeed,
                           .measured_text = "no measurement",
                           .reason = cat(error.what(), ". Fix: free room, or another --output")});
  }
  remove_file(path);
}

struct CheckpointProbe {
  uint64_t bytes = 0;
  uint64_t files = 0;
  std::string evidence;
};

// Two real steps with real saves: the size and the time of a checkpoint, not a guess. A save shows
// in the record of the step that follows it.
std::optional<CheckpointProbe> save_one_checkpoint(ScenarioContext& context, Recorder& recorder) {
  const std::string folder = context.evidence_folder("storage", "probe");
  const Workload workload = context.workloads(recorder.list("workloads")).front();
  TrialRequest request = context.train(
      folder, workload, {"--max_steps", "2", "--save_steps", "1", "--save_total_limit", "0"});
  const TrialResult result = context.run(request);
  const std::string log = context.relative(join_path(folder, "log.txt"));
  const auto entries = is_directory(request.run_dir)
                           ? checkpoints::list_checkpoints(request.run_dir)
                           : std::vector<checkpoints::CheckpointEntry>{};
  if (!result.is_exit(0) || entries.size() != 2) {
    recorder.judge(false, {.check = kProbe,
                           .measured_text = describe_end(result),
                           .reason = cat("two steps with a save each left ", entries.size(),
                                         " checkpoints, expected 2. Fix: read log.txt"),
                           .evidence = {log}});
    return std::nullopt;
  }
  const std::string& path = entries.back().path;
  CheckpointProbe probe{checkpoint_bytes(path), checkpoint_files(path), log};
  const auto findings = checkpoints::verify_checkpoint(path);
  recorder.judge(
      findings.empty(),
      {.check = kProbe,
       .measured = static_cast<double>(probe.bytes),
       .unit = "bytes",
       .reason = findings.empty() ? std::string("every byte was read back and matches")
                                  : cat(findings.front().file, ": ", findings.front().problem),
       .evidence = {context.relative(join_path(path, "manifest.json"))}});
  const auto steps = metrics::read_metrics(join_path(request.run_dir, "metrics.jsonl")).steps;
  double save_ms = 0;
  for (const metrics::StepRecord& record : steps) {
    save_ms = std::max(save_ms, record.phases.checkpoint_ms);
  }
  recorder.at_most({.check = kSaveTime,
                    .measured = save_ms / 1000,
                    .unit = "s",
                    .reason = cat("one save of ", bytes_text(probe.bytes)),
                    .evidence = {log}});
  recorder.fact({.name = "storage.save_seconds",
                 .value = save_ms / 1000,
                 .unit = "s",
                 .note = cat("one save of ", bytes_text(probe.bytes))});
  context.drop_weights(request.run_dir);
  return probe;
}

struct CheckpointPlan {
  double count = 0;
  std::string source;
};

// Retention keeps `limit`, and the next one is written before the oldest goes.
CheckpointPlan plan_checkpoints(const ScenarioContext& context, const Recorder& recorder) {
  const double planned = recorder.size("planned_checkpoints");
  if (!context.has_user_config()) return {planned, "planned by the suite"};
  const Workload workload = context.workloads({}).front();
  const config::RunConfig config = config::parse_train_arguments(workload.options).config;
  const auto limit = static_cast<double>(config.checkpoint.save_total_limit);
  if (!config.max_steps) {
    const double kept = limit > 0 ? std::min(planned, limit + 1) : planned;
    return {kept, "planned by the suite, since the configuration sets no max_steps"};
  }
  const double every = static_cast<double>(config.checkpoint.save_steps);
  const double saves = every > 0 ? std::ceil(static_cast<double>(*config.max_steps) / every) : 1.0;
  return {limit > 0 ? std::min(saves, limit + 1) : saves, "of the configuration's run"};
}

void judge_room(const ScenarioContext& context, const CheckpointProbe& probe, Recorder& recorder) {
  const CheckpointPlan plan = plan_checkpoints(context, recorder);
  const DiskSpace space = disk_space(context.output());
  const double needed_bytes = plan.count * static_cast<double>(probe.bytes);
  recorder.at_least(
      {.check = kRoom,
       .measured = static_cast<double>(space.free_bytes) / std::max(needed_bytes, 1.0),
       .measured_text = cat(bytes_text(space.free_bytes), " free"),
       .unit = "x need",
       .reason = cat(plan.count, " checkpoints (", plan.source, ") of ", bytes_text(probe.bytes),
                     " need ", bytes_text(static_cast<uint64_t>(needed_bytes)))});
  if (space.total_inodes == 0) {
    recorder.not_applicable(kInodes, "this file system does not count inodes");
    return;
  }
  const double needed_inodes = plan.count * static_cast<double>(probe.files + 1);
  recorder.at_least(
      {.check = kInodes,
       .measured = static_cast<double>(space.free_inodes) / std::max(needed_inodes, 1.0),
       .measured_text = cat(space.free_inodes, " free"),
       .unit = "x need",
       .reason = cat(plan.count, " checkpoints of ", probe.files, " files need ", needed_inodes)});
}

void judge_disk(const ScenarioContext& context, Recorder& recorder) {
  const auto& mounts = context.environment().mounts;
  const auto mount = std::find_if(
      mounts.begin(), mounts.end(),
      [&](const platform::MountFacts& facts) { return facts.path == context.output(); });
  if (mount == mounts.end()) {
    recorder.could_not_run({.check = kDataDisk, .reason = "the mount table was not readable"});
  } else {
    recorder.judge(!mount->is_root_disk,
                   {.check = kDataDisk,
                    .measured_text = cat(mount->mount_point, " (", mount->file_system, ")"),
                    .reason = mount->is_root_disk
                                  ? std::string("output and checkpoints lie on the root disk: "
                                                "filling it stops the machine. Fix: mount a data "
                                                "disk and give --output there")
                                  : std::string("output lies on a disk of its own")});
  }
  const DiskSpace space = disk_space(context.output());
  const double used = 1.0 - static_cast<double>(space.free_bytes) /
                                static_cast<double>(std::max<uint64_t>(space.total_bytes, 1));
  const DiskUse use =
      measure_disk_use({parent_path(context.output())}, recorder.size("disk_use_seconds_each"));
  std::string places;
  for (const PlaceUse& place : use.places) {
    places += cat(places.empty() ? "" : ", ", place.path, " ", place.is_cut ? "over " : "",
                  bytes_text(place.bytes));
  }
  if (!use.duplicate_weights.empty()) {
    places += cat("; perhaps the same weights twice: ", join(use.duplicate_weights, ", "));
  }
  recorder.at_most({.check = kFill,
                    .measured = used,
                    .measured_text = cat(bytes_text(space.total_bytes - space.free_bytes), " of ",
                                         bytes_text(space.total_bytes), " used"),
                    .unit = "fraction",
                    .reason = cat("what fills the disk: ", places.empty() ? "nothing in the usual "
                                                                            "places"
                                                                          : places)});
}

void run_storage(ScenarioContext& context, Recorder& recorder) {
  context.expect_trials(1);
  const std::string folder = context.evidence_folder("storage", "probe");
  create_directories(folder);
  judge_durable_write(folder, recorder);
  judge_write_speed(folder, recorder);
  const std::optional<CheckpointProbe> probe = save_one_checkpoint(context, recorder);
  if (probe) judge_room(context, *probe, recorder);
  judge_disk(context, recorder);
}

}  // namespace

Scenario storage_scenario() {
  Scenario scenario;
  scenario.key = "storage";
  scenario.description = "durable writes, room and speed for the checkpoints to come";
  scenario.needs = {
      .name = "storage",
      .sizes = {"write_megabytes", "planned_checkpoints", "disk_use_seconds_each"},
      .lists = {"workloads"},
      .checks = {kWritable, kSpeed, kProbe, kSaveTime, kRoom, kInodes, kDataDisk, kFill},
      .checks_with_threshold = {kSpeed, kSaveTime, kRoom, kInodes, kFill}};
  scenario.reason_not_to_run = can_always_run;
  scenario.run = run_storage;
  return scenario;
}

}  // namespace assay::harness
