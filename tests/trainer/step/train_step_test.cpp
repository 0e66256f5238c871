#include "trainer/step/train_step.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "base/error.h"
#include "base/files.h"
#include "checkpoints/writer.h"
#include "trainer/step/device.h"
#include "trainer/step/evaluate.h"

namespace assay::step {
namespace {

const c10::Device kCpu(c10::kCPU);

config::RunConfig tiny_run_config() {
  config::RunConfig config;
  config.model.name = "gpt_tiny";
  config.model.n_layer = 1;
  config.model.n_head = 2;
  config.model.n_embd = 16;
  config.model.n_positions = 8;
  config.data.name = "synthetic";
  config.batch_size = 4;
  config.optimizer.weight_decay = 0.1;
  config.num_threads = 1;
  return config;
}

// Everything one run needs, over 40 numbered synthetic samples.
struct Rig {
  config::RunConfig config;
  data::OpenedData data;
  data::Sampler sampler;
  mutable distributed::World world = distributed::World::alone();
  launch::ProgressPage page = launch::ProgressPage::create();
  TrainState state;
  TrainStep step;
  StepClock clock{kCpu};

  explicit Rig(const config::RunConfig& settings)
      : config(settings),
        data(open(settings)),
        sampler(sampler_config(settings, data)),
        state(make_initial_state(config, kCpu, 100, world)),
        step(config, data.train->spec(), sampler, kCpu, {world, page}) {}

  static data::OpenedData open(const config::RunConfig& config) {
    data::DataRequest request;
    request.name = "synthetic";
    request.is_tokens = true;
    request.sequence_length = *config.model.n_positions;
    request.num_classes = 256;
    request.synthetic_samples = 40;
    return data::open_data(request);
  }
  static data::SamplerConfig sampler_config(const config::RunConfig& config,
                                            const data::OpenedData& data) {
    return {.dataset_size = data.train->size(),
            .micro_batch_size = config.batch_size,
            .grad_accum_steps = config.gradient_accumulation_steps,
            .seed = config.seed};
  }

  std::vector<metrics::StepRecord> run(int steps, int64_t num_workers = 0) {
    data::DataLoader loader(*data.train, sampler, {.num_workers = num_workers});
    loader.start(state.position);
    std::vector<metrics::StepRecord> records;
    for (int i = 0; i < steps; ++i) {
      PendingStep pending = step.run(state, loader, clock);
      records.push_back(step.resolve(state, pending).record);
    }
    return records;
  }

  std::string digest() const {
    return checkpoints::state_digest(capture(state, config, kCpu, world).parts).total;
  }
};

void restore_from(Rig& rig, const checkpoints::Checkpoint& checkpoint) {
  restore(rig.state, {checkpoint.path, checkpoint.trainer, checkpoint.ranks}, &checkpoint,
          rig.config, kCpu, rig.world);
}

TEST(TrainStep, EqualRunsAreBitEqual) {
  Rig first(tiny_run_config());
  const auto first_records = first.run(5);
  Rig second(tiny_run_config());
  const auto second_records = second.run(5, /*num_workers=*/3);
  for (size_t i = 0; i < first_records.size(); ++i) {
    EXPECT_EQ(first_records[i].loss, second_records[i].loss);
    EXPECT_EQ(first_records[i].grad_norm, second_records[i].grad_norm);
    EXPECT_EQ(first_records[i].ids_digest, second_records[i].ids_digest);
  }
  EXPECT_EQ(first.digest(), second.digest());
}

TEST(TrainStep, CountsWhatItUsed) {
  config::RunConfig config = tiny_run_config();
  config.batch_size = 16;  // 40 samples: windows of 16, 16, 8
  Rig rig(config);
  const auto records = rig.run(4);
  EXPECT_EQ(records[2].samples_seen, 40);
  EXPECT_EQ(records[2].tokens_seen, 320);
  EXPECT_EQ(records[2].epoch, 1.0);
  EXPECT_EQ(records[3].samples_seen, 56);
  EXPECT_EQ(rig.state.position, (data::DataPosition{1, 16}));
}

TEST(TrainStep, PhasesAddUpToTheStep) {
  Rig rig(tiny_run_config());
  for (const metrics::StepRecord& record : rig.run(3)) {
    const metrics::PhaseTimes& p = record.phases;
    const double sum = p.data_wait_ms + p.h2d_ms + p.forward_ms + p.backward_ms + p.comm_ms +
                       p.optimizer_ms + p.checkpoint_ms + p.other_ms;
    // Both are sums of the same intervals in another order: a few roundings apart.
    EXPECT_NEAR(sum, record.time_ms, 1e-9 * record.time_ms + 1e-12);
    EXPECT_GT(p.forward_ms, 0);
    EXPECT_GT(p.backward_ms, 0);
  }
}

// ||a - b|| / ||b|| over all parameters of two runs.
double distance(const Rig& a, const Rig& b) {
  double worst = 0;
  for (size_t i = 0; i < a.state.parameters.size(); ++i) {
    const at::Tensor left = a.state.parameters[i].tensor;
    const at::Tensor right = b.state.parameters[i].tensor;
    const double norm = right.norm().item<double>();
    const double difference = (left - right).norm().item<double>();
    worst = std::max(worst, norm > 0 ? difference / norm : difference);
  }
  return worst;
}

TEST(TrainStep, AccumulationEqualsOneBigBatchWithAShortLastWindow) {
  config::RunConfig big = tiny_run_config();
  big.precision = "fp64";
  big.batch_size = 12;  // 40 samples: 12, 12, 12, 4
  big.optimizer.max_grad_norm = 0.5;
  big.optimizer.name = "sgd";
  config::RunConfig accumulated = big;
  accumulated.batch_size = 3;
  accumulated.gradient_accumulation_steps = 4;
  Rig one(big);
  Rig many(accumulated);
  const auto one_records = one.run(8);
  const auto many_records = many.run(8);
  for (size_t i = 0; i < one_records.size(); ++i) {
    // float64 sums of some thousand terms in another order differ by about 1e-15.
    EXPECT_NEAR(one_records[i].loss, many_records[i].loss, 1e-12 * one_records[i].loss);
    EXPECT_EQ(one_records[i].samples_seen, many_records[i].samples_seen);
  }
  EXPECT_LE(distance(many, one), 1e-12);
}

TEST(TrainStep, CaptureAndRestoreGiveTheSameRun) {
  config::RunConfig config = tiny_run_config();
  config.model.dropout = 0.1;  // so that the random generator matters
  Rig reference(config);
  reference.run(6);
  Rig first(config);
  first.run(3);
  const TemporaryFolder folder;
  const HostState host = capture(first.state, config, kCpu, first.world);
  checkpoints::CommitRequest request;
  request.run_dir = folder.path();
  request.parts = host.parts;
  const std::string path = checkpoints::commit_checkpoint(request).path;
  Rig second(config);
  torch::rand({17});  // a generator that stands elsewhere
  restore_from(second, checkpoints::open_checkpoint(path));
  EXPECT_EQ(second.digest(), first.digest());
  second.run(3);
  EXPECT_EQ(second.digest(), reference.digest());
}

TEST(TrainStep, RestoreRefusesAnotherModel) {
  Rig rig(tiny_run_config());
  const TemporaryFolder folder;
  const HostState host = capture(rig.state, rig.config, kCpu, rig.world);
  checkpoints::CommitRequest request;
  request.run_dir = folder.path();
  request.parts = host.parts;
  const auto checkpoint =
      checkpoints::open_checkpoint(checkpoints::commit_checkpoint(request).path);
  config::RunConfig wider = tiny_run_config();
  wider.model.n_embd = 32;
  Rig other(wider);
  EXPECT_THROW(restore_from(other, checkpoint), CheckpointError);
  config::RunConfig deeper = tiny_run_config();
  deeper.model.n_layer = 2;
  Rig third(deeper);
  EXPECT_THROW(restore_from(third, checkpoint), CheckpointError);
}

TEST(TrainStep, ANonfiniteLossIsReportedAndNotApplied) {
  Rig rig(tiny_run_config());
  rig.run(1);
  {
    const torch::NoGradGuard no_grad;
    rig.state.parameters.back().tensor.fill_(std::numeric_limits<float>::quiet_NaN());
  }
  std::vector<at::Tensor> before;
  for (const NamedTensor& parameter : rig.state.parameters)
    before.push_back(parameter.tensor.detach().clone());
  data::DataLoader loader(*rig.data.train, rig.sampler, {.num_workers = 0});
  loader.start(rig.state.position);
  PendingStep pending = rig.step.run(rig.state, loader, rig.clock);
  const ResolvedStep resolved = rig.step.resolve(rig.state, pending);
  EXPECT_TRUE(resolved.is_nonfinite);
  EXPECT_EQ(resolved.record.updates, 1);
  EXPECT_EQ(resolved.record.skipped, 1);
  EXPECT_EQ(resolved.nonfinite_gradient, rig.state.parameters.front().name);
  for (size_t i = 0; i + 1 < before.size(); ++i) {
    EXPECT_TRUE(before[i].equal(rig.state.parameters[i].tensor)) << rig.state.parameters[i].name;
  }
}

TEST(Evaluation, CountsEverySampleOnceAndChangesNothing) {
  config::RunConfig config = tiny_run_config();
  config.batch_size = 3;
  config.model.dropout = 0.5;
  Rig rig(config);
  rig.run(1);
  const std::string before = rig.digest();
  const metrics::EvalRecord record = evaluate(rig.state, *rig.data.eval, config, kCpu, rig.world);
  EXPECT_EQ(record.samples, rig.data.eval->size());
  EXPECT_EQ(record.targets, rig.data.eval->size() * 8);
  EXPECT_EQ(rig.digest(), before);
  EXPECT_TRUE(rig.state.model.module->is_training());
  EXPECT_EQ(evaluate(rig.state, *rig.data.eval, config, kCpu, rig.world).loss, record.loss);
}

TEST(SeedGenerators, UsesAllSixtyFourBits) {
  std::set<std::string> streams;
  for (const uint64_t seed : {uint64_t{0}, uint64_t{1}, (uint64_t{1} << 32) - 1, uint64_t{1} << 32,
                              1 + (uint64_t{1} << 40), uint64_t{1} << 63}) {
    seed_generators(seed, kCpu);
    streams.insert(c10::str(torch::randint(1 << 30, {4})));
  }
  EXPECT_EQ(streams.size(), 6U);
}

TEST(SeedGenerators, StateTravelsAsHex) {
  seed_generators(7, kCpu);
  torch::randn({3});
  const std::string state = cpu_rng_hex();
  const at::Tensor next = torch::randn({5});
  seed_generators(8, kCpu);
  restore_cpu_rng(state);
  EXPECT_TRUE(torch::randn({5}).equal(next));
  EXPECT_THROW(restore_cpu_rng("zz"), CheckpointError);
  EXPECT_THROW(restore_cpu_rng("00ff"), CheckpointError);
}

}  // namespace
}  // namespace assay::step
