// Tracing against counts by hand: what a model keeps, what it multiplies, when gradients are done.
#include "trainer/estimate/step_trace.h"

#include <algorithm>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trainer/config/config_io.h"
#include "trainer/config/later_release.h"
#include "trainer/config/model_sizes.h"

namespace assay::estimate {
namespace {

constexpr int64_t kB = 8;      // micro-batch
constexpr int64_t kFloat = 4;  // bytes
constexpr int64_t kHalf = 2;
constexpr int64_t kLong = 8;

config::RunConfig config_of(const std::string& model, const std::string& precision = "fp32") {
  config::RunConfig config;
  config.model.name = model;
  config.precision = precision;
  config.batch_size = kB;
  return config;
}

StepTrace trace(const config::RunConfig& config, bool is_gpu = true) {
  ShapeDevice device({.is_gpu = is_gpu, .cublas_workspace_bytes = 1 << 20});
  return trace_step(device, config);
}

double flops_of(const StepTrace& trace, Stage stage) {
  return std::accumulate(trace.work.begin(), trace.work.end(), 0.0,
                         [&](double sum, const OperationWork& work) {
                           return sum + (work.stage == stage ? work.flops : 0.0);
                         });
}

int64_t of_kind(const BytesByKind& bytes, MemoryKind kind) {
  return bytes[static_cast<size_t>(kind)];
}

// What mnist_cnn keeps for its backward pass, tensor by tensor (models/mnist_cnn.cpp).
int64_t mnist_saved_bytes(int64_t mask_bytes) {
  const int64_t relu1 = kB * 32 * 26 * 26 * kFloat;  // also conv2's input
  const int64_t relu2 = kB * 64 * 24 * 24 * kFloat;  // also the pooling's input
  const int64_t pool_indices = kB * 64 * 12 * 12 * kLong;
  const int64_t mask1 = kB * 64 * 12 * 12 * mask_bytes;
  const int64_t dropped1 = kB * 64 * 12 * 12 * kFloat;  // fc1's input
  const int64_t relu3 = kB * 128 * kFloat;
  const int64_t mask2 = kB * 128 * mask_bytes;
  const int64_t dropped2 = kB * 128 * kFloat;  // fc2's input
  const int64_t log_p = kB * 10 * kFloat;
  const int64_t loss_and_total_weight = 2 * kFloat;
  return relu1 + relu2 + pool_indices + mask1 + dropped1 + relu3 + mask2 + dropped2 + log_p +
         loss_and_total_weight;
}

TEST(StepTrace, KeepsWhatMnistCnnSaves) {
  EXPECT_EQ(trace(config_of("mnist_cnn")).activation_bytes, mnist_saved_bytes(/*mask_bytes=*/1));
}

TEST(StepTrace, KeepsDropoutsFactorsOnTheCpu) {
  EXPECT_EQ(trace(config_of("mnist_cnn"), /*is_gpu=*/false).activation_bytes,
            mnist_saved_bytes(/*mask_bytes=*/kFloat));
}

TEST(StepTrace, CountsStateByKind) {
  const StepTrace traced = trace(config_of("mnist_cnn"));
  EXPECT_EQ(traced.parameters, 1'199'882);
  EXPECT_EQ(traced.parameter_tensors, 8);
  // Every block is rounded to 512 bytes; in the largest pool up to 1 MiB may stay with a block.
  const int64_t weights = traced.parameters * kFloat;
  const int64_t slack = traced.parameter_tensors * 512 + (1 << 20);
  EXPECT_GE(of_kind(traced.state, MemoryKind::kWeights), weights);
  EXPECT_LE(of_kind(traced.state, MemoryKind::kWeights), weights + slack);
  EXPECT_GE(of_kind(traced.state, MemoryKind::kGradients), weights);
  EXPECT_GE(of_kind(traced.state, MemoryKind::kOptimizer), 2 * weights);
  EXPECT_LE(of_kind(traced.state, MemoryKind::kOptimizer), 2 * (weights + slack) + 512);
  EXPECT_EQ(of_kind(traced.requested, MemoryKind::kWeights), weights);
  constexpr int64_t kStepCounter = kFloat;  // one, on the device
  EXPECT_EQ(of_kind(traced.requested, MemoryKind::kOptimizer), 2 * weights + kStepCounter);
  config::RunConfig sgd = config_of("mnist_cnn");
  sgd.optimizer.name = "sgd";
  sgd.optimizer.momentum = 0;
  EXPECT_EQ(of_kind(trace(sgd).state, MemoryKind::kOptimizer), 0);
}

// One block of width D over N = B T tokens keeps, in float32: the input of each norm with its two
// values a row, the input of each product, queries, keys, values and output of the attention with
// one value a row and head, and the input of GELU.
TEST(StepTrace, KeepsWhatAGptBlockSaves) {
  config::RunConfig config = config_of("gpt_tiny");
  config.model.n_layer = 2;
  const int64_t two_blocks = trace(config).activation_bytes;
  config.model.n_layer = 3;
  const int64_t three_blocks = trace(config).activation_bytes;
  const config::GptSizes sizes = config::gpt_sizes(config.model);
  const int64_t tokens = kB * sizes.n_positions;
  const int64_t width = sizes.n_embd;
  const int64_t norms = 2 * (tokens * width + 2 * tokens);    // input, mean and deviation
  const int64_t products = tokens * width * (1 + 1 + 1 + 4);  // inputs of the four
  const int64_t attention =
      tokens * width * 3 + tokens * sizes.n_head;  // its output is a product's
  const int64_t gelu = tokens * 4 * width;
  const int64_t seeds = 2 * kLong;
  EXPECT_EQ(three_blocks - two_blocks, (norms + products + attention + gelu) * kFloat + seeds);
}

TEST(StepTrace, KeepsHalfPrecisionUnderAutocast) {
  config::RunConfig config = config_of("gpt_tiny", "bf16");
  config.model.n_layer = 2;
  const int64_t two_blocks = trace(config).activation_bytes;
  config.model.n_layer = 3;
  const int64_t three_blocks = trace(config).activation_bytes;
  const config::GptSizes sizes = config::gpt_sizes(config.model);
  const int64_t tokens = kB * sizes.n_positions;
  const int64_t width = sizes.n_embd;
  // The residual stream and the norms stay float32; products and attention take bfloat16, each
  // product with a copy of its weight.
  const int64_t norms = 2 * (tokens * width + 2 * tokens) * kFloat;
  const int64_t products = tokens * width * (1 + 1 + 1 + 4) * kHalf;
  const int64_t attention = tokens * width * 3 * kHalf + tokens * sizes.n_head * kFloat;
  const int64_t gelu = tokens * 4 * width * kHalf;
  const int64_t weights = 12 * width * width * kHalf;
  const int64_t biases = (3 + 1 + 4 + 1) * width * kHalf;  // cast beside them, kept by the cache
  const int64_t kept = three_blocks - two_blocks;
  const int64_t expected = norms + products + attention + gelu + weights + 2 * kLong;
  // The cache of casts is emptied when the forward pass ends, so that biases may or may not stay.
  EXPECT_GE(kept, expected);
  EXPECT_LE(kept, expected + biases);
}

// The peak of VGG-16 in float32 lies where the second convolution's weights get their gradient, in
// transformed space: 56 x 56 tiles of 36 numbers for 64 + 64 channels, and 36 for each weight.
TEST(StepTrace, CountsTheWorkspaceOfLargeConvolutions) {
  config::RunConfig config = config_of("vgg16");
  config.batch_size = 32;
  const StepTrace traced = trace(config);
  const int64_t transformed = 4 * 36 * (56 * 56 * config.batch_size * (64 + 64) + 64 * 64);
  const int64_t matrices = 1 << 20;  // the workspaces of the matrix library, two threads' each
  const int64_t at_peak = of_kind(traced.steady_peak.by_kind, MemoryKind::kWorkspace);
  EXPECT_GE(at_peak, transformed);
  EXPECT_LE(at_peak, transformed + 2 * matrices + (1 << 20));
  EXPECT_LT(of_kind(trace(config, false).steady_peak.by_kind, MemoryKind::kWorkspace), transformed);
}

TEST(StepTrace, CountsMultiplications) {
  const StepTrace traced = trace(config_of("mnist_cnn"));
  const double conv1 = 2.0 * kB * 32 * 26 * 26 * 9;
  const double conv2 = 2.0 * kB * 64 * 24 * 24 * 32 * 9;
  const double fc1 = 2.0 * kB * 9216 * 128;
  const double fc2 = 2.0 * kB * 128 * 10;
  EXPECT_DOUBLE_EQ(flops_of(traced, Stage::kForward), conv1 + conv2 + fc1 + fc2);
  // Twice as much, less the gradient of the images, which nobody needs.
  EXPECT_DOUBLE_EQ(flops_of(traced, Stage::kBackward), 2 * (conv1 + conv2 + fc1 + fc2) - conv1);
}

TEST(StepTrace, CountsSixFlopsAParameterAndToken) {
  config::RunConfig config = config_of("gpt2");
  config.batch_size = 1;
  const StepTrace traced = trace(config);
  // Kaplan et al. 2020, sec. 2.1: 6 N per token for the N parameters in products; position table
  // and norms are below 1 %, attention over the context adds 6 n_layer T D (causal half).
  const double tokens = 1024;
  const double products = 6.0 * (124'439'808 - 1024 * 768) * tokens;
  const double attention = 12.0 * (2.0 + 5.0) * tokens * tokens * 768;
  const double all = flops_of(traced, Stage::kForward) + flops_of(traced, Stage::kBackward);
  EXPECT_NEAR(all, products + attention, 0.01 * all);
}

TEST(StepTrace, SeesEveryGradientOnceInReverseOrder) {
  const StepTrace traced = trace(config_of("mnist_cnn"));
  ASSERT_EQ(traced.ready.size(), traced.registered.size());
  EXPECT_THAT(traced.ready.front().name, testing::StartsWith("fc2."));
  EXPECT_THAT(traced.ready.back().name, testing::StartsWith("conv1."));
  size_t before = 0;
  for (const ReadyGradient& gradient : traced.ready) {
    EXPECT_GE(gradient.num_operations, before);
    before = gradient.num_operations;
  }
}

TEST(StepTrace, CountsKeysAndValuesOfEveryLayer) {
  for (const int64_t accumulation : {1, 2, 5}) {
    config::RunConfig config = config_of("gpt2");
    config.batch_size = 1;
    config.gradient_accumulation_steps = accumulation;
    EXPECT_EQ(trace(config).kv_elements_per_token, 2 * 12 * 768);
  }
  EXPECT_EQ(trace(config_of("mnist_cnn")).kv_elements_per_token, 0);
}

TEST(StepTrace, NeedsTwiceTheMemoryInDoublePrecision) {
  const StepTrace single = trace(config_of("gpt_tiny"), false);
  const StepTrace twice = trace(config_of("gpt_tiny", "fp64"), false);
  EXPECT_EQ(twice.weight_element_bytes, 8);
  // Token ids and attention's float32 row values do not double.
  EXPECT_NEAR(static_cast<double>(twice.activation_bytes),
              2.0 * static_cast<double>(single.activation_bytes),
              0.02 * static_cast<double>(twice.activation_bytes));
}

TEST(StepTrace, KeepsMoreForLabelSmoothing) {
  config::RunConfig config = config_of("gpt_tiny");
  const int64_t plain = trace(config).activation_bytes;
  config.label_smoothing_factor = 0.1;
  EXPECT_GT(trace(config).activation_bytes, plain);
}

TEST(StepTrace, GrowsWithTheMicroBatchAndNotWithAccumulation) {
  config::RunConfig config = config_of("gpt_tiny");
  config.gradient_accumulation_steps = 2;
  const int64_t small = trace(config).steady_peak.bytes;
  config.gradient_accumulation_steps = 8;
  EXPECT_EQ(trace(config).steady_peak.bytes, small);
  config.batch_size *= 2;
  EXPECT_GT(trace(config).steady_peak.bytes, small);
}

TEST(StepTrace, AddsUpToThePeakByKind) {
  const MemoryPeak peak = trace(config_of("gpt_tiny")).steady_peak;
  EXPECT_EQ(std::accumulate(peak.by_kind.begin(), peak.by_kind.end(), int64_t{0}), peak.bytes);
}

TEST(StepTrace, RefusesSizesThatCannotBe) {
  config::RunConfig config = config_of("gpt_tiny");
  config.model.n_embd = 130;  // 4 heads
  EXPECT_ANY_THROW(trace(config));
  config.model.n_embd = 128;  // and the device is free again
  EXPECT_GT(trace(config).parameters, 0);
}

class EveryModel : public testing::TestWithParam<std::string> {};

TEST_P(EveryModel, CanBeTracedInEveryPrecision) {
  for (const char* precision : {"fp32", "bf16", "fp64"}) {
    SCOPED_TRACE(precision);
    config::RunConfig config = config_of(GetParam(), precision);
    config.batch_size = 2;
    config.label_smoothing_factor = 0.1;
    const bool is_gpu = config.precision != "fp64";
    const StepTrace traced = trace(config, is_gpu);
    EXPECT_EQ(traced.ready.size(), traced.registered.size());
    EXPECT_GT(traced.activation_bytes, 0);
    EXPECT_GT(flops_of(traced, Stage::kBackward), flops_of(traced, Stage::kForward));
    EXPECT_GE(traced.reserved_bytes, traced.steady_peak.bytes);
  }
}

std::vector<std::string> models_of_this_release() {
  std::vector<std::string> names;
  for (const std::string& name : config::model_names()) {
    if (config::find_later_value("model.name", name) == nullptr) names.push_back(name);
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(Models, EveryModel, testing::ValuesIn(models_of_this_release()),
                         [](const auto& one) {
                           std::string name = one.param;
                           std::erase(name, '_');
                           return name;
                         });

}  // namespace
}  // namespace assay::estimate
