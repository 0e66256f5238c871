#include "checkpoints/published_names.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "checkpoints/json_fields.h"
#include "checkpoints/tensor_shape.h"

namespace assay::checkpoints {
namespace {

constexpr std::string_view kPrefix = "transformer.";
constexpr std::string_view kTokenTable = "transformer.wte.weight";
constexpr std::string_view kOutputLayer = "lm_head.weight";
// Of the released GPT-2 vocabulary: the last id, which begins and ends a text.
constexpr int64_t kPublishedVocabulary = 50257;

const TensorView* find(const std::vector<TensorView>& tensors, std::string_view name) {
  const auto found = std::find_if(tensors.begin(), tensors.end(),
                                  [&](const TensorView& tensor) { return tensor.name == name; });
  return found == tensors.end() ? nullptr : &*found;
}

// Lower triangles, and the number that stands for minus infinity: constants, no weights.
bool is_attention_mask(std::string_view name) {
  return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias");
}

bool has_equal_bytes(const TensorView& left, const TensorView& right) {
  return left.dtype == right.dtype && left.shape == right.shape &&
         (left.byte_count == 0 || std::memcmp(left.bytes, right.bytes, left.byte_count) == 0);
}

void check_tied(const std::vector<TensorView>& tensors, const TensorView& output,
                const std::string& origin) {
  const TensorView* table = find(tensors, kTokenTable);
  if (table != nullptr && has_equal_bytes(output, *table)) return;
  throw CheckpointError(cat(origin, ": ", kOutputLayer, " ", shape_text(output.shape),
                            " differs from ", kTokenTable, ", to which GPT-2 ties it. Fix: give ",
                            "weights with a tied output layer"));
}

// Heads of the named models where the run's configuration leaves them out: Radford et al. 2019 and
// the released configurations; gpt_tiny is ours.
int64_t named_heads(std::string_view model) {
  constexpr std::array<std::pair<std::string_view, int64_t>, 5> kHeads = {
      {{"gpt_tiny", 4}, {"gpt2", 12}, {"gpt2_medium", 16}, {"gpt2_large", 20}, {"gpt2_xl", 25}}};
  for (const auto& [name, heads] : kHeads) {
    if (name == model) return heads;
  }
  return 0;
}

int64_t block_count(const std::vector<TensorView>& tensors) {
  return std::count_if(tensors.begin(), tensors.end(), [](const TensorView& tensor) {
    return tensor.name.ends_with(".ln_1.weight");
  });
}

int64_t size_of(const std::vector<TensorView>& tensors, std::string_view name, size_t dimension,
                const std::string& origin) {
  const TensorView* tensor = find(tensors, name);
  if (tensor != nullptr && tensor->shape.size() == 2) return tensor->shape[dimension];
  throw CheckpointError(cat(origin, ": ", name, " is missing or has not two dimensions. Fix: give ",
                            "a checkpoint of a GPT"));
}

}  // namespace

bool is_gpt2(const std::vector<TensorView>& tensors) {
  return find(tensors, kTokenTable) != nullptr || find(tensors, "wte.weight") != nullptr;
}

std::vector<TensorView> with_own_names(const std::vector<TensorView>& tensors,
                                       const std::string& origin) {
  if (!is_gpt2(tensors)) return tensors;
  std::vector<TensorView> own;
  std::set<std::string> names;
  const TensorView* output = nullptr;
  for (const TensorView& tensor : tensors) {
    if (is_attention_mask(tensor.name)) continue;
    if (tensor.name == kOutputLayer) {
      output = &tensor;
      continue;
    }
    own.push_back(tensor);
    std::string& name = own.back().name;
    if (!name.starts_with(kPrefix)) name = cat(kPrefix, name);
    if (!names.insert(name).second) {
      throw CheckpointError(cat(origin, ": two tensors are ", quoted(name), ", with and without ",
                                "the prefix. Fix: give a file with one set of weights"));
    }
  }
  if (output != nullptr) check_tied(own, *output, origin);
  return own;
}

std::string gpt2_config_json(const std::vector<TensorView>& tensors, std::string_view config_json,
                             const std::string& origin) {
  const nlohmann::json run = parse_checkpoint_json(config_json, origin);
  const bool has_model = run.is_object() && run.contains("model") && run["model"].is_object();
  const nlohmann::json model = has_model ? run["model"] : nlohmann::json::object();
  const auto number_or = [&](const char* key, double otherwise) {
    const nlohmann::json value = model.value(key, nlohmann::json());
    return value.is_number() ? value.get<double>() : otherwise;
  };
  const bool has_name = model.contains("name") && model["name"].is_string();
  const std::string name = has_name ? model["name"].get<std::string>() : "";
  const auto heads =
      static_cast<int64_t>(number_or("n_head", static_cast<double>(named_heads(name))));
  const int64_t width = size_of(tensors, kTokenTable, 1, origin);
  if (heads < 1 || width % heads != 0) {
    throw CheckpointError(cat(origin, ": model.name is ", quoted(name), " with ", heads,
                              " heads, expected a divisor of its width ", width,
                              ". Fix: export a checkpoint of a GPT"));
  }
  const double dropout = number_or("dropout", 0.0);
  const int64_t vocabulary = size_of(tensors, kTokenTable, 0, origin);
  const int64_t positions = size_of(tensors, "transformer.wpe.weight", 0, origin);
  nlohmann::ordered_json config;
  config["architectures"] = {"GPT2LMHeadModel"};
  config["model_type"] = "gpt2";
  config["activation_function"] = "gelu_new";
  config["attn_pdrop"] = dropout;
  config["embd_pdrop"] = dropout;
  config["resid_pdrop"] = dropout;
  config["initializer_range"] = 0.02;
  config["layer_norm_epsilon"] = 1e-5;
  config["n_ctx"] = positions;
  config["n_embd"] = width;
  config["n_head"] = heads;
  config["n_layer"] = block_count(tensors);
  config["n_positions"] = positions;
  config["vocab_size"] = vocabulary;
  // Another vocabulary has no such token.
  const bool is_published = vocabulary == kPublishedVocabulary;
  config["bos_token_id"] = is_published ? nlohmann::json(vocabulary - 1) : nlohmann::json();
  config["eos_token_id"] = config["bos_token_id"];
  config["tie_word_embeddings"] = true;
  const bool is_double = find(tensors, kTokenTable)->dtype == "F64";
  config["torch_dtype"] = is_double ? "float64" : "float32";
  return config.dump(2) + "\n";
}

}  // namespace assay::checkpoints
