#include "trainer/config/later_release.h"

namespace assay::config {
namespace {

constexpr std::string_view kUseOtherModel =
    "choose one of the models that assay train --help lists";
constexpr std::string_view kUseOtherData =
    "choose one of the data sets that assay train --help lists";
constexpr std::string_view kUseOtherSchedule =
    "use constant, constant_with_warmup, linear or cosine";

constexpr LaterSetting kLater[] = {
    {"gradient_checkpointing", "", "leave it out and lower batch_size if memory is short"},
    {"on_oom", "", "leave it out: running out of memory stops the run", true},
    {"on_bad_sample", "", "leave it out: a bad sample stops the run and is named", true},
    {"profile_steps", "", "leave it out: metrics.jsonl has the phases of every step", true},
    {"batch_size", "auto", "give a number"},
    {"precision", "fp16", "use --bf16, or fp32 by leaving it out"},
    {"schedule.type", "step", kUseOtherSchedule},
    {"schedule.type", "multistep", kUseOtherSchedule},
    {"schedule.type", "wsd", kUseOtherSchedule},
    {"model.name", "lenet5", kUseOtherModel},
    {"model.name", "vgg16", kUseOtherModel},
    {"model.name", "vgg16_bn", kUseOtherModel},
    {"model.name", "resnet18", kUseOtherModel},
    {"model.name", "resnet34", kUseOtherModel},
    {"model.name", "resnet50", kUseOtherModel},
    {"model.name", "resnet20_cifar", kUseOtherModel},
    {"model.name", "mobilenet_v2", kUseOtherModel},
    {"model.name", "vit_b_16", kUseOtherModel},
    {"data.name", "cifar10", kUseOtherData},
    {"data.name", "cifar100", kUseOtherData},
    {"data.name", "image_folder", kUseOtherData},
    {"data.name", "tar_shards", kUseOtherData},
    {"data.name", "packed", kUseOtherData},
    {"data.name", "tokens", kUseOtherData},
};

}  // namespace

std::span<const LaterSetting> later_settings() { return kLater; }

const LaterSetting* find_later_option(std::string_view name) {
  for (const LaterSetting& setting : kLater) {
    if (setting.value.empty() && setting.key == name) return &setting;
  }
  return nullptr;
}

const LaterSetting* find_later_value(std::string_view key, std::string_view value) {
  for (const LaterSetting& setting : kLater) {
    if (!setting.value.empty() && setting.key == key && setting.value == value) return &setting;
  }
  return nullptr;
}

}  // namespace assay::config
