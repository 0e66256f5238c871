// Weights to and from other programs: names, formats, refusals.
#include <iostream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "checkpoints/checkpoint_command.h"
#include "checkpoints/published_names.h"
#include "tests/checkpoints/sample_state.h"

namespace assay::checkpoints {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using Words = std::vector<std::string>;

std::string run(const Words& words) {
  std::ostringstream captured;
  std::streambuf* const before = std::cout.rdbuf(captured.rdbuf());
  try {
    EXPECT_EQ(run_checkpoint_command(words), 0);
  } catch (...) {
    std::cout.rdbuf(before);
    throw;
  }
  std::cout.rdbuf(before);
  return captured.str();
}

std::string refused(const Words& words) {
  return thrown_message<Error>([&] { run(words); });
}

// Tensors of consecutive numbers.
class NumberedTensors {
 public:
  std::vector<TensorView> list;

  void add(const std::string& name, std::vector<int64_t> shape) {
    size_t count = 1;
    for (const int64_t size : shape) count *= static_cast<size_t>(size);
    std::vector<float> values;
    for (size_t i = 0; i < count; ++i) values.push_back(static_cast<float>(next_++));
    list.push_back(
        state_.add(name, "F32", std::move(shape), values.data(), values.size() * sizeof(float)));
  }
  void add_bytes(const std::string& name, const std::string& dtype, std::vector<int64_t> shape,
                 const std::string& bytes) {
    list.push_back(state_.add(name, dtype, std::move(shape), bytes.data(), bytes.size()));
  }
  void repeat(const std::string& name, const TensorView& original) {
    list.push_back(original);
    list.back().name = name;
  }

 private:
  SampleState state_;
  int next_ = 0;
};

// Two blocks of width 8, 11 ids, 5 positions; only what the names and sizes need.
void add_gpt2(NumberedTensors& tensors, const std::string& prefix) {
  tensors.add(prefix + "wte.weight", {11, 8});
  tensors.add(prefix + "wpe.weight", {5, 8});
  for (const char* block : {"h.0.", "h.1."}) {
    tensors.add(prefix + block + "ln_1.weight", {8});
    tensors.add(prefix + block + "attn.c_attn.weight", {8, 24});
    tensors.add(prefix + block + "attn.c_attn.bias", {24});
  }
  tensors.add(prefix + "ln_f.weight", {8});
}

std::vector<std::string> names_of(const std::vector<TensorView>& tensors) {
  std::vector<std::string> names;
  for (const TensorView& tensor : tensors) names.push_back(tensor.name);
  return names;
}

std::string commit_gpt2(const std::string& run_dir, const std::string& config_json) {
  SampleState state(10);
  NumberedTensors tensors;
  add_gpt2(tensors, "transformer.");
  state.parts.model = tensors.list;
  state.parts.trainer.config_json = config_json;
  return commit_checkpoint(request_for(run_dir, state)).path;
}

TEST(PublishedNames, PutThePrefixBeforeAndLeaveMasksAndTheTiedHeadOut) {
  NumberedTensors bare;
  add_gpt2(bare, "");
  bare.add("h.0.attn.bias", {1, 1, 5, 5});
  bare.add("h.0.attn.masked_bias", {});
  bare.repeat("lm_head.weight", bare.list[0]);
  NumberedTensors prefixed;
  add_gpt2(prefixed, "transformer.");
  EXPECT_EQ(names_of(with_own_names(bare.list, "x")), names_of(prefixed.list));
  EXPECT_EQ(names_of(with_own_names(prefixed.list, "x")), names_of(prefixed.list));
}

TEST(PublishedNames, LeaveThoseOfTorchvisionAlone) {
  NumberedTensors tensors;
  tensors.add("layer1.0.conv1.weight", {2, 2});
  tensors.add("encoder.layers.encoder_layer_0.attn.bias", {2});
  EXPECT_THAT(names_of(with_own_names(tensors.list, "x")),
              ElementsAre("layer1.0.conv1.weight", "encoder.layers.encoder_layer_0.attn.bias"));
}

TEST(PublishedNames, RefuseAnUntiedOutputLayerAndDoubles) {
  NumberedTensors untied;
  add_gpt2(untied, "");
  untied.add("lm_head.weight", {11, 8});
  EXPECT_THAT(thrown_message<CheckpointError>([&] { with_own_names(untied.list, "a/file"); }),
              AllOf(HasSubstr("a/file: lm_head.weight [11, 8]"), HasSubstr("Fix: ")));
  NumberedTensors twice;
  add_gpt2(twice, "");
  twice.add("transformer.ln_f.weight", {8});
  EXPECT_THAT(thrown_message<CheckpointError>([&] { with_own_names(twice.list, "x"); }),
              HasSubstr("two tensors are \"transformer.ln_f.weight\""));
}

TEST(CheckpointExport, HuggingFaceFolderHoldsWeightsAndTheirConfiguration) {
  const TemporaryFolder folder;
  const std::string checkpoint =
      commit_gpt2(folder.path(), R"({"model": {"name": "gpt_tiny", "n_head": 2, "dropout": 0.1}})");
  const std::string output = join_path(folder.path(), "exported");
  run({"export", checkpoint, "--format", "hf", "--output", output});
  EXPECT_THAT(list_directory(output), ElementsAre("config.json", "model.safetensors"));
  const auto config = nlohmann::json::parse(read_file(join_path(output, "config.json")));
  EXPECT_EQ(config["model_type"], "gpt2");
  EXPECT_EQ(config["n_layer"], 2);
  EXPECT_EQ(config["n_head"], 2);
  EXPECT_EQ(config["n_embd"], 8);
  EXPECT_EQ(config["n_positions"], 5);
  EXPECT_EQ(config["vocab_size"], 11);
  EXPECT_EQ(config["resid_pdrop"], 0.1);
  EXPECT_TRUE(config["bos_token_id"].is_null());
  const SafetensorsFile exported(join_path(output, "model.safetensors"));
  EXPECT_EQ(exported.tensors().size(), 9U);
  EXPECT_THAT(refused({"export", checkpoint, "--format", "hf", "--output", output}),
              HasSubstr("exists already"));
}

TEST(CheckpointExport, TakesTheHeadsOfTheNamedModelWhereTheRunDoes) {
  const TemporaryFolder folder;
  const std::string checkpoint =
      commit_gpt2(folder.path(), R"({"model": {"name": "gpt_tiny", "n_head": null}})");
  const std::string output = join_path(folder.path(), "exported");
  run({"export", checkpoint, "--format=hf", "--output", output});
  const auto config = nlohmann::json::parse(read_file(join_path(output, "config.json")));
  EXPECT_EQ(config["n_head"], 4);
  EXPECT_EQ(config["attn_pdrop"], 0.0);
}

TEST(CheckpointExport, RefusesAFormatOfOtherModels) {
  const TemporaryFolder folder;
  create_directories(join_path(folder.path(), "a"));
  create_directories(join_path(folder.path(), "b"));
  const std::string image = commit_sample(join_path(folder.path(), "a"), 10);
  const std::string gpt =
      commit_gpt2(join_path(folder.path(), "b"), R"({"model": {"name": "gpt2_small"}})");
  const std::string output = join_path(folder.path(), "out.safetensors");
  EXPECT_THAT(refused({"export", image, "--format=hf", "--output", output}),
              HasSubstr("Fix: --format torchvision"));
  EXPECT_THAT(refused({"export", gpt, "--format=torchvision", "--output", output}),
              HasSubstr("Fix: --format hf"));
  EXPECT_THAT(refused({"export", gpt, "--format=hf", "--output", output}),
              AllOf(HasSubstr("\"gpt2_small\" with 0 heads"), HasSubstr("width 8")));
  run({"export", image, "--format=torchvision", "--output", output});
  EXPECT_EQ(SafetensorsFile(output).tensors().size(), 3U);
  EXPECT_EQ(list_directory(folder.path()).size(), 3U);
}

TEST(CheckpointImport, BringsAFileUnderOwnNamesAndToFloat) {
  const TemporaryFolder folder;
  NumberedTensors tensors;
  add_gpt2(tensors, "");
  tensors.add_bytes("ln_f.bias", "BF16", {2}, std::string("\x80\x3f\x00\xc0", 4));  // 1, -2
  const std::string source = join_path(folder.path(), "source.safetensors");
  write_safetensors(source, tensors.list, {}, "");
  const std::string output = join_path(folder.path(), "start.safetensors");
  EXPECT_THAT(run({"import", source, "--output", output}),
              AllOf(HasSubstr("10 tensors"), HasSubstr("1 made float32"),
                    HasSubstr("model.init_from=" + output)));
  const SafetensorsFile imported(output);
  const TensorView* table = imported.find("transformer.wte.weight");
  ASSERT_NE(table, nullptr);
  EXPECT_EQ(std::memcmp(table->bytes, tensors.list[0].bytes, table->byte_count), 0);
  const TensorView* bias = imported.find("transformer.ln_f.bias");
  ASSERT_NE(bias, nullptr);
  EXPECT_EQ(bias->dtype, "F32");
  float values[2];
  std::memcpy(values, bias->bytes, sizeof values);
  EXPECT_THAT(values, ElementsAre(1.0F, -2.0F));
}

TEST(CheckpointImport, ReadsTheShardsThatAnIndexNames) {
  const TemporaryFolder folder;
  NumberedTensors first;
  first.add("wte.weight", {3, 2});
  NumberedTensors second;
  second.add("ln_f.weight", {2});
  write_safetensors(join_path(folder.path(), "model-1.safetensors"), first.list, {}, "");
  write_safetensors(join_path(folder.path(), "model-2.safetensors"), second.list, {}, "");
  write_plain(join_path(folder.path(), "model.safetensors.index.json"),
              R"({"weight_map": {"wte.weight": "model-1.safetensors",
                  "ln_f.weight": "model-2.safetensors"}})");
  const std::string output = join_path(folder.path(), "start.safetensors");
  run({"import", folder.path(), "--output", output});
  EXPECT_EQ(SafetensorsFile(output).tensors().size(), 2U);
}

TEST(CheckpointImport, RefusesWhatItCannotRead) {
  const TemporaryFolder folder;
  const std::string output = join_path(folder.path(), "start.safetensors");
  const auto import = [&](const std::string& name) {
    return refused({"import", join_path(folder.path(), name), "--output", output});
  };
  write_plain(join_path(folder.path(), "weights.pt"), std::string("PK\x03\x04zip", 7));
  EXPECT_THAT(import("weights.pt"), AllOf(HasSubstr("torch.save"), HasSubstr("save_file")));
  EXPECT_THAT(import(""), HasSubstr("holds neither model.safetensors nor"));
  EXPECT_THAT(import("none.safetensors"), HasSubstr("Fix: "));
  write_plain(join_path(folder.path(), "model.safetensors.index.json"),
              R"({"weight_map": {"a": "../secret"}})");
  EXPECT_THAT(import(""), HasSubstr("expected a file beside it"));
  write_plain(join_path(folder.path(), "model.safetensors.index.json"), R"({"weight_map": {}})");
  EXPECT_THAT(import(""), HasSubstr("names no file"));
  EXPECT_FALSE(path_exists(output));
  EXPECT_THAT(refused({"import", folder.path()}), HasSubstr("needs --output"));
  EXPECT_THAT(refused({"import", folder.path(), "--output", "x.pt"}),
              HasSubstr("must end with .safetensors"));
}

}  // namespace
}  // namespace assay::checkpoints
