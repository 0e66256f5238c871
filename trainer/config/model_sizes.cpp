#include "trainer/config/model_sizes.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/text.h"

namespace assay::config {
namespace {

struct NamedGpt {
  std::string_view name;
  GptSizes sizes;
};

// gpt_tiny is ours; the others: Radford et al. 2019, table 2, with the vocabulary of the released
// weights.
constexpr NamedGpt kGpts[] = {
    {"gpt_tiny", {.n_layer = 4, .n_head = 4, .n_embd = 128, .n_positions = 128, .vocab_size = 256}},
    {"gpt2",
     {.n_layer = 12, .n_head = 12, .n_embd = 768, .n_positions = 1024, .vocab_size = 50257}},
    {"gpt2_medium",
     {.n_layer = 24, .n_head = 16, .n_embd = 1024, .n_positions = 1024, .vocab_size = 50257}},
    {"gpt2_large",
     {.n_layer = 36, .n_head = 20, .n_embd = 1280, .n_positions = 1024, .vocab_size = 50257}},
    {"gpt2_xl",
     {.n_layer = 48, .n_head = 25, .n_embd = 1600, .n_positions = 1024, .vocab_size = 50257}},
};

const NamedGpt* find_gpt(std::string_view name) {
  const auto* found = std::find_if(std::begin(kGpts), std::end(kGpts),
                                   [&](const NamedGpt& gpt) { return gpt.name == name; });
  return found == std::end(kGpts) ? nullptr : found;
}

}  // namespace

std::span<const std::string> model_names() {
  static const std::array<std::string, 6> names = {"mnist_cnn",   "gpt_tiny",   "gpt2",
                                                   "gpt2_medium", "gpt2_large", "gpt2_xl"};
  return names;
}

std::span<const std::string> dataset_names() {
  static const std::array<std::string, 5> names = {"digits", "text", "fashion_mnist", "mnist",
                                                   "synthetic"};
  return names;
}

bool is_gpt_model(std::string_view name) { return find_gpt(name) != nullptr; }

bool is_token_dataset(std::string_view name) { return name == "text" || name == "synthetic"; }

bool is_image_dataset(std::string_view name) {
  return name == "digits" || name == "fashion_mnist" || name == "mnist" || name == "synthetic";
}

GptSizes gpt_sizes(const ModelConfig& model) {
  const NamedGpt* gpt = find_gpt(model.name);
  if (gpt == nullptr) {
    throw InternalError(
        cat("gpt_sizes was asked for the model ", quoted(model.name), ", which is no GPT"));
  }
  GptSizes sizes = gpt->sizes;
  sizes.n_layer = model.n_layer.value_or(sizes.n_layer);
  sizes.n_head = model.n_head.value_or(sizes.n_head);
  sizes.n_embd = model.n_embd.value_or(sizes.n_embd);
  sizes.n_positions = model.n_positions.value_or(sizes.n_positions);
  sizes.vocab_size = model.vocab_size.value_or(sizes.vocab_size);
  sizes.dropout = model.dropout.value_or(sizes.dropout);
  return sizes;
}

std::string effective_dataset(const RunConfig& config) {
  if (!config.data.name.empty()) return config.data.name;
  return is_gpt_model(config.model.name) ? "text" : "digits";
}

RunConfig with_effective_values(const RunConfig& config) {
  RunConfig filled = config;
  filled.data.name = effective_dataset(config);
  if (filled.data.name == "synthetic" && !filled.data.synthetic_samples) {
    filled.data.synthetic_samples = 1024;
  }
  if (!is_gpt_model(config.model.name)) return filled;
  const GptSizes sizes = gpt_sizes(config.model);
  filled.model.n_layer = sizes.n_layer;
  filled.model.n_head = sizes.n_head;
  filled.model.n_embd = sizes.n_embd;
  filled.model.n_positions = sizes.n_positions;
  filled.model.vocab_size = sizes.vocab_size;
  filled.model.dropout = sizes.dropout;
  if (!filled.data.sequence_length) filled.data.sequence_length = sizes.n_positions;
  return filled;
}

}  // namespace assay::config
