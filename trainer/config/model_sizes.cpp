#include "trainer/config/model_sizes.h"

#include <algorithm>
#include <array>
#include <vector>

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

enum class Dropout {
  kNone,
  kOne,      // one rate, ImageSizes::dropout
  kSeveral,  // rates of its own, unless model.dropout sets all of them
};

// Of image_size. The smallest still leaves the last map one place.
struct SizeLimits {
  int64_t smallest = 32;
  int64_t largest = 8192;
  int64_t multiple = 1;
};

struct NamedImageModel {
  std::string_view name;
  ImageSizes sizes;
  SizeLimits limits = {};
  Dropout dropout = Dropout::kNone;
  std::string_view dataset = "image_folder";  // when none is named
};

constexpr ImageSizes kImageNet = {.channels = 3, .image_size = 224, .num_classes = 1000};
constexpr ImageSizes kCifar = {.channels = 3, .image_size = 32, .num_classes = 10};
constexpr ImageSizes kDigits = {.channels = 1, .image_size = 28, .num_classes = 10};

constexpr ImageSizes with_dropout(ImageSizes sizes, double dropout) {
  sizes.dropout = dropout;
  return sizes;
}

constexpr NamedImageModel kImageModels[] = {
    {"mnist_cnn", kDigits, {.smallest = 28, .largest = 28}, Dropout::kSeveral, "digits"},
    {"lenet5", kDigits, {.smallest = 28, .largest = 28}, Dropout::kNone, "digits"},
    {"vgg16", with_dropout(kImageNet, 0.5), {}, Dropout::kOne},
    {"vgg16_bn", with_dropout(kImageNet, 0.5), {}, Dropout::kOne},
    {"resnet18", kImageNet},
    {"resnet34", kImageNet},
    {"resnet50", kImageNet},
    {"resnet20_cifar", kCifar, {.smallest = 8}, Dropout::kNone, "cifar10"},
    {"resnet56_cifar", kCifar, {.smallest = 8}, Dropout::kNone, "cifar10"},
    {"mobilenet_v2", with_dropout(kImageNet, 0.2), {}, Dropout::kOne},
    {"vit_b_16", kImageNet, {.smallest = 16, .multiple = 16}, Dropout::kOne},
    {"vit_s_16", kImageNet, {.smallest = 16, .multiple = 16}, Dropout::kOne},
    {"vit_ti_16", kImageNet, {.smallest = 16, .multiple = 16}, Dropout::kOne},
};

const NamedImageModel& find_image_model(std::string_view name) {
  const auto* found =
      std::find_if(std::begin(kImageModels), std::end(kImageModels),
                   [&](const NamedImageModel& model) { return model.name == name; });
  if (found != std::end(kImageModels)) return *found;
  throw InternalError(
      cat("the sizes of ", quoted(name), " were asked for, which is no image model"));
}

std::vector<std::string> all_model_names() {
  std::vector<std::string> names;
  for (const NamedImageModel& model : kImageModels) names.emplace_back(model.name);
  for (const NamedGpt& gpt : kGpts) names.emplace_back(gpt.name);
  return names;
}

std::string limits_text(const SizeLimits& limits) {
  if (limits.smallest == limits.largest) return cat("must be ", limits.smallest);
  return cat("must be from ", limits.smallest, " to ", limits.largest,
             limits.multiple > 1 ? cat(" and a multiple of ", limits.multiple) : "");
}

void fill_image_model(ModelConfig& model) {
  const ImageSizes sizes = image_sizes(model);
  model.image_size = sizes.image_size;
  model.num_classes = sizes.num_classes;
  if (find_image_model(model.name).dropout != Dropout::kSeveral) model.dropout = sizes.dropout;
}

}  // namespace

std::span<const std::string> model_names() {
  static const std::vector<std::string> names = all_model_names();
  return names;
}

std::span<const std::string> dataset_names() {
  static const std::array<std::string, 11> names = {
      "digits",       "text",       "fashion_mnist", "mnist",  "cifar10",  "cifar100",
      "image_folder", "tar_shards", "packed",        "tokens", "synthetic"};
  return names;
}

bool is_gpt_model(std::string_view name) { return find_gpt(name) != nullptr; }

// What packed shards hold, their header says when they are opened.
bool is_token_dataset(std::string_view name) {
  return name == "text" || name == "tokens" || name == "packed" || name == "synthetic";
}

bool has_image_files(std::string_view name) {
  return name == "image_folder" || name == "tar_shards" || name == "packed";
}

bool is_image_dataset(std::string_view name) {
  return name == "digits" || name == "fashion_mnist" || name == "mnist" || name == "cifar10" ||
         name == "cifar100" || name == "synthetic" || has_image_files(name);
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

ImageSizes image_sizes(const ModelConfig& model) {
  ImageSizes sizes = find_image_model(model.name).sizes;
  sizes.image_size = model.image_size.value_or(sizes.image_size);
  sizes.num_classes = model.num_classes.value_or(sizes.num_classes);
  sizes.dropout = model.dropout.value_or(sizes.dropout);
  return sizes;
}

std::string image_size_problem(const ModelConfig& model) {
  const NamedImageModel& named = find_image_model(model.name);
  const int64_t size = image_sizes(model).image_size;
  const SizeLimits& limits = named.limits;
  if (size < limits.smallest || size > limits.largest || size % limits.multiple != 0) {
    return cat("model.image_size is ", size, ", ", limits_text(limits), " (model ", model.name,
               "). Fix: e.g. model.image_size=", named.sizes.image_size);
  }
  if (named.dropout == Dropout::kNone && model.dropout.value_or(0.0) > 0.0) {
    return cat("model.dropout is ", *model.dropout, ", but model.name ", quoted(model.name),
               " has no dropout. Fix: leave it out");
  }
  return "";
}

std::string effective_dataset(const RunConfig& config) {
  if (!config.data.name.empty()) return config.data.name;
  if (is_gpt_model(config.model.name)) return "text";
  return std::string(find_image_model(config.model.name).dataset);
}

RunConfig with_effective_values(const RunConfig& config) {
  RunConfig filled = config;
  filled.data.name = effective_dataset(config);
  if (filled.data.name == "synthetic" && !filled.data.synthetic_samples) {
    filled.data.synthetic_samples = 1024;
  }
  if (!is_gpt_model(config.model.name)) {
    fill_image_model(filled.model);
    return filled;
  }
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
