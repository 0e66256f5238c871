#include "trainer/config/later_release.h"

namespace assay::config {
namespace {

constexpr LaterSetting kLater[] = {
    {"gradient_checkpointing", "", "leave it out and lower batch_size if memory is short"},
    {"on_oom", "", "leave it out: running out of memory stops the run", true},
    {"on_bad_sample", "", "leave it out: a bad sample stops the run and is named", true},
    {"profile_steps", "", "leave it out: metrics.jsonl has the phases of every step", true},
    {"batch_size", "auto", "give a number"},
    {"precision", "fp16", "use --bf16, or fp32 by leaving it out"},
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
