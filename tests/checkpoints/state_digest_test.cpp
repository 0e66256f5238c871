#include "checkpoints/state_digest.h"

#include <algorithm>
#include <functional>

#include <gtest/gtest.h>

#include "base/digest.h"
#include "base/error.h"
#include "tests/checkpoints/sample_state.h"

namespace assay::checkpoints {
namespace {

// Components whose digest a change moves.
std::vector<std::string> moved_by(const std::function<void(SampleState&)>& change) {
  const SampleState before;
  SampleState after;
  change(after);
  const StateDigest left = state_digest(before.parts);
  const StateDigest right = state_digest(after.parts);
  std::vector<std::string> moved;
  for (const auto& [name, digest] : left.components) {
    if (right.components.at(name) != digest) moved.push_back(name);
  }
  EXPECT_EQ(left.total == right.total, moved.empty());
  return moved;
}

using Names = std::vector<std::string>;

TEST(StateDigest, EachFieldBelongsToOneComponent) {
  EXPECT_EQ(moved_by([](SampleState& s) { s.parts.trainer.step = 11; }), Names{"counters"});
  EXPECT_EQ(moved_by([](SampleState& s) { s.parts.trainer.skipped = 2; }), Names{"counters"});
  EXPECT_EQ(moved_by([](SampleState& s) { s.parts.trainer.last_loss += 1e-15; }),
            Names{"counters"});
  EXPECT_EQ(moved_by([](SampleState& s) { s.parts.trainer.best.reset(); }), Names{});
  EXPECT_EQ(moved_by([](SampleState& s) { s.parts.trainer.samples_in_epoch = 1; }), Names{"data"});
  EXPECT_EQ(moved_by([](SampleState& s) { s.parts.trainer.epoch = 2; }), Names{"data"});
  EXPECT_EQ(moved_by([](SampleState& s) { s.parts.trainer.schedule_total_steps = 1; }),
            Names{"schedule"});
  EXPECT_EQ(moved_by([](SampleState& s) { s.parts.trainer.last_learning_rate = -0.0; }),
            Names{"schedule"});
  EXPECT_EQ(moved_by([](SampleState& s) { s.parts.trainer.scaler->scale = 2; }), Names{"scaler"});
  EXPECT_EQ(moved_by([](SampleState& s) { s.parts.trainer.scaler.reset(); }), Names{"scaler"});
  EXPECT_EQ(moved_by([](SampleState& s) { s.parts.trainer.optimizer = "sgd"; }),
            Names{"optimizer"});
  EXPECT_EQ(moved_by([](SampleState& s) { s.parts.ranks[0].cpu_rng_hex = "01"; }), Names{"rng"});
  EXPECT_EQ(moved_by([](SampleState& s) { s.parts.ranks[0].cuda_rng_hex = "01"; }), Names{"rng"});
}

TEST(StateDigest, ASingleBitOfATensorMovesItsComponent) {
  EXPECT_EQ(moved_by([](SampleState& s) { s.set_float(s.parts.model, "conv1.bias", 1, -0.0F); }),
            Names{"model"});
  EXPECT_EQ(
      moved_by([](SampleState& s) { s.set_float(s.parts.optimizer, "exp_avg/conv1.bias", 0, 3); }),
      Names{"optimizer"});
  EXPECT_EQ(moved_by([](SampleState& s) { s.parts.model[0].shape = {18}; }), Names{"model"});
  EXPECT_EQ(moved_by([](SampleState& s) { s.parts.model[0].dtype = "I32"; }), Names{"model"});
  EXPECT_EQ(moved_by([](SampleState& s) { s.parts.model[0].name = "conv2.weight"; }),
            Names{"model"});
  EXPECT_EQ(moved_by([](SampleState& s) { s.parts.model.pop_back(); }), Names{"model"});
}

TEST(StateDigest, OrderLineageAndConfigurationDoNotCount) {
  EXPECT_EQ(
      moved_by([](SampleState& s) { std::reverse(s.parts.model.begin(), s.parts.model.end()); }),
      Names{});
  EXPECT_EQ(moved_by([](SampleState& s) {
              std::reverse(s.parts.optimizer.begin(), s.parts.optimizer.end());
            }),
            Names{});
  EXPECT_EQ(moved_by([](SampleState& s) { s.parts.trainer.run_id = "run-b"; }), Names{});
  EXPECT_EQ(moved_by([](SampleState& s) { s.parts.trainer.config_json = "{}"; }), Names{});
}

TEST(StateDigest, OrderOfRanksDoesNotCount) {
  SampleState state(10, 3);
  const StateDigest before = state_digest(state.parts);
  std::reverse(state.parts.ranks.begin(), state.parts.ranks.end());
  EXPECT_EQ(state_digest(state.parts).total, before.total);
}

TEST(StateDigest, RepeatedTensorsAreOurBug) {
  SampleState state;
  state.parts.model.push_back(state.parts.model.front());
  EXPECT_THROW(state_digest(state.parts), InternalError);
}

// The texts are written out here from FORMAT.md, not taken from the code.
TEST(StateDigest, FollowsTheFormatPage) {
  const SampleState state;
  const StateDigest digest = state_digest(state.parts);
  const auto line = [&](const TensorView& tensor, const std::string& shape) {
    return cat(tensor.dtype, " ", shape, " ", sha256_hex(tensor.bytes, tensor.byte_count), " ",
               tensor.name, "\n");
  };
  EXPECT_EQ(
      digest.components.at("model"),
      sha256_hex(cat("assay state digest 1 model\n", line(state.parts.model[2], "[]"),
                     line(state.parts.model[1], "[2]"), line(state.parts.model[0], "[2,1,3,3]"))));
  EXPECT_EQ(digest.components.at("scaler"),
            sha256_hex("assay state digest 1 scaler\nscale 0x1p+16\ngrowth_tracker 7\n"));
  EXPECT_EQ(digest.components.at("data"),
            sha256_hex("assay state digest 1 data\nepoch 1\nsamples_in_epoch 80\n"));
  std::string total = "assay state digest 1\n";
  for (const std::string name :
       {"model", "optimizer", "schedule", "scaler", "rng", "counters", "data"}) {
    total += cat(name, " ", digest.components.at(name), "\n");
  }
  EXPECT_EQ(digest.total, sha256_hex(total));
}

}  // namespace
}  // namespace assay::checkpoints
