// Models with buffers in the state: running statistics survive a save, and weights come from files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "base/error.h"
#include "base/files.h"
#include "checkpoints/writer.h"
#include "trainer/step/initial_weights.h"
#include "trainer/step/train_state.h"

namespace assay::step {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const c10::Device kCpu(c10::kCPU);

config::RunConfig image_config() {
  config::RunConfig config;
  config.model.name = "resnet20_cifar";
  config.model.image_size = 8;
  config.data.name = "synthetic";
  return config;
}

struct Rig {
  config::RunConfig config;
  distributed::World world = distributed::World::alone();
  TrainState state;

  explicit Rig(const config::RunConfig& settings)
      : config(settings), state(make_initial_state(config, kCpu, 100, world)) {}

  at::Tensor images() const {
    return at::linspace(-1, 1, 3 * 3 * 8 * 8).reshape({3, 3, 8, 8}).to(weight_type(config));
  }
  at::Tensor evaluate() {
    const torch::NoGradGuard no_grad;
    state.model.module->eval();
    const at::Tensor logits = state.model.forward(images());
    state.model.module->train();
    return logits;
  }
  std::string save(const std::string& folder) {
    HostState host = capture(state, config, kCpu, world);
    checkpoints::CommitRequest request;
    request.run_dir = folder;
    request.parts = host.parts;
    return checkpoints::commit_checkpoint(request).path;
  }
  std::string digest() {
    return checkpoints::state_digest(capture(state, config, kCpu, world).parts).total;
  }
};

TEST(TrainState, KeepsRunningStatisticsAndTheirCounterOverASave) {
  for (const char* precision : {"fp32", "fp64"}) {
    const TemporaryFolder folder;
    config::RunConfig config = image_config();
    config.precision = precision;
    Rig trained(config);
    for (int i = 0; i < 3; ++i) trained.state.model.forward(trained.images());
    const checkpoints::Checkpoint checkpoint =
        checkpoints::open_checkpoint(trained.save(folder.path()));
    const checkpoints::TensorView* counter = checkpoint.model->find("bn1.num_batches_tracked");
    ASSERT_NE(counter, nullptr);
    EXPECT_EQ(counter->dtype, "I64");

    Rig fresh(config);
    EXPECT_NE(fresh.digest(), trained.digest());
    EXPECT_FALSE(fresh.evaluate().equal(trained.evaluate()));
    restore(fresh.state, {checkpoint.path, checkpoint.trainer, checkpoint.ranks}, &checkpoint,
            config, kCpu, fresh.world);
    EXPECT_EQ(fresh.digest(), trained.digest());
    EXPECT_TRUE(fresh.evaluate().equal(trained.evaluate()));
  }
}

TEST(InitialWeights, ComeFromAFileWithBuffers) {
  const TemporaryFolder folder;
  Rig trained(image_config());
  for (int i = 0; i < 2; ++i) trained.state.model.forward(trained.images());
  config::RunConfig config = image_config();
  config.seed = 7;
  EXPECT_FALSE(Rig(config).evaluate().equal(trained.evaluate()));
  config.model.init_from = join_path(trained.save(folder.path()), "model.safetensors");
  EXPECT_TRUE(Rig(config).evaluate().equal(trained.evaluate()));
  config.precision = "fp64";
  // A change of type alone: 20 layers of float32 sums over up to 576 terms, norm-wise.
  const at::Tensor wide = Rig(config).evaluate();
  const at::Tensor difference = wide - trained.evaluate().to(at::kDouble);
  EXPECT_LT((difference.norm() / wide.norm()).item<double>(), 1e-4);
}

// The GPT's file has no prefix, masks of old releases, and half precision.
TEST(InitialWeights, ComeFromHuggingFacesGpt2) {
  const TemporaryFolder folder;
  config::RunConfig config;
  config.model.name = "gpt_tiny";
  config.model.n_layer = 1;
  config.data.name = "synthetic";
  Rig trained(config);
  std::vector<at::Tensor> owners;
  std::vector<checkpoints::TensorView> views;
  const auto add = [&](const std::string& name, const at::Tensor& tensor, const char* dtype) {
    owners.push_back(tensor.contiguous());
    views.push_back({name, dtype, owners.back().sizes().vec(), owners.back().const_data_ptr(),
                     owners.back().nbytes()});
  };
  for (const NamedTensor& entry : trained.state.parameters) {
    const std::string bare = entry.name.substr(std::string("transformer.").size());
    add(bare, entry.tensor.detach().to(at::kBFloat16), "BF16");
  }
  add("h.0.attn.bias", at::ones({1, 1, 4, 4}), "F32");
  add("lm_head.weight", owners.front(), "BF16");
  const std::string path = join_path(folder.path(), "model.safetensors");
  checkpoints::write_safetensors(path, views, {}, "");

  config.seed = 99;
  config.model.init_from = path;
  Rig started(config);
  for (size_t i = 0; i < started.state.parameters.size(); ++i) {
    const at::Tensor expected = trained.state.parameters[i].tensor.to(at::kBFloat16).to(at::kFloat);
    EXPECT_TRUE(started.state.parameters[i].tensor.equal(expected))
        << started.state.parameters[i].name;
  }
}

std::string refusal_of(const config::RunConfig& config) {
  try {
    const Rig rig(config);
  } catch (const CheckpointError& error) {
    return error.what();
  }
  return "";
}

TEST(InitialWeights, RefuseTheFileOfAnotherModel) {
  const TemporaryFolder folder;
  Rig trained(image_config());
  config::RunConfig config = image_config();
  config.model.init_from = join_path(trained.save(folder.path()), "model.safetensors");
  config.model.num_classes = 100;
  EXPECT_THAT(refusal_of(config),
              AllOf(HasSubstr(config.model.init_from), HasSubstr("\"fc.weight\" is F32 [10, 64]"),
                    HasSubstr("[100, 64]"), HasSubstr("model.num_classes")));
  config.model.num_classes = {};
  config.model.name = "resnet56_cifar";
  EXPECT_THAT(refusal_of(config), HasSubstr("is missing in the file"));
  config::RunConfig deep = image_config();
  deep.model.name = "resnet56_cifar";
  Rig deeper(deep);
  const TemporaryFolder other;
  config.model.name = "resnet20_cifar";
  config.model.init_from = join_path(deeper.save(other.path()), "model.safetensors");
  EXPECT_THAT(refusal_of(config), HasSubstr("is not the model's"));
  config.model.init_from = join_path(other.path(), "none.safetensors");
  EXPECT_THAT(refusal_of(config), HasSubstr("none.safetensors"));
}

}  // namespace
}  // namespace assay::step
