// What is wrong with a configuration: each value by its field, then the combinations.
#include <algorithm>

#include "base/text.h"
#include "trainer/config/layer.h"
#include "trainer/config/model_sizes.h"
#include "trainer/config/values.h"

namespace assay::config {
namespace {

using Lines = std::vector<std::string>;

// A combination that cannot be. It is not judged if one of the values it reads is broken itself.
struct Rule {
  std::vector<std::string_view> keys;
  void (*check)(const RunConfig& config, Lines& lines);
};

void check_model_sizes(const RunConfig& config, Lines& lines) {
  const ModelConfig& model = config.model;
  if (!is_gpt_model(model.name)) {
    for (const std::string_view key : {"model.n_layer", "model.n_head", "model.n_embd",
                                       "model.n_positions", "model.vocab_size"}) {
      const Value value = find_field(key)->get(config);
      if (std::holds_alternative<Unset>(value)) continue;
      lines.push_back(cat(key, " is ", value_text(value), ", but model.name ", quoted(model.name),
                          " has no such size. Fix: leave it out, or use --model gpt_tiny"));
    }
    const std::string problem = image_size_problem(model);
    if (!problem.empty()) lines.push_back(problem);
    return;
  }
  for (const std::string_view key : {"model.num_classes", "model.image_size"}) {
    const Value value = find_field(key)->get(config);
    if (std::holds_alternative<Unset>(value)) continue;
    lines.push_back(cat(key, " is ", value_text(value), ", but model.name ", quoted(model.name),
                        " reads tokens. Fix: leave it out"));
  }
  const GptSizes sizes = gpt_sizes(model);
  if (sizes.n_embd % sizes.n_head != 0) {
    lines.push_back(cat("model.n_embd is ", sizes.n_embd, ", must be a multiple of model.n_head ",
                        sizes.n_head, " (model ", model.name, "). Fix: e.g. model.n_embd=",
                        (sizes.n_embd / sizes.n_head + 1) * sizes.n_head));
  }
}

void check_model_and_data(const RunConfig& config, Lines& lines) {
  const std::string dataset = effective_dataset(config);
  const std::string& model = config.model.name;
  const bool is_gpt = is_gpt_model(model);
  if (is_gpt && !is_token_dataset(dataset)) {
    lines.push_back(cat("model.name ", quoted(model), " reads tokens, but data.name is ",
                        quoted(dataset),
                        ", a set of images. Fix: --dataset text, or --model mnist_cnn"));
  } else if (!is_gpt && !is_image_dataset(dataset)) {
    lines.push_back(cat("model.name ", quoted(model), " reads images, but data.name is ",
                        quoted(dataset),
                        ", a set of tokens. Fix: --dataset digits, or --model gpt_tiny"));
  }
}

void check_sequence_length(const RunConfig& config, Lines& lines) {
  const std::optional<int64_t> length = config.data.sequence_length;
  if (!length) return;
  if (!is_gpt_model(config.model.name)) {
    lines.push_back(cat("data.sequence_length is ", *length, ", but model.name ",
                        quoted(config.model.name), " reads images. Fix: leave it out"));
    return;
  }
  const int64_t context = gpt_sizes(config.model).n_positions;
  if (*length <= context) return;
  lines.push_back(cat("data.sequence_length is ", *length, ", must be at most model.n_positions ",
                      context, " (model ", config.model.name,
                      "). Fix: data.sequence_length=", context, " or model.n_positions=", *length));
}

void check_vocabulary(const RunConfig& config, Lines& lines) {
  constexpr int64_t kByteIds = 256;
  if (!is_gpt_model(config.model.name) || effective_dataset(config) != "text") return;
  const int64_t vocabulary = gpt_sizes(config.model).vocab_size;
  if (vocabulary >= kByteIds) return;
  lines.push_back(cat("model.vocab_size is ", vocabulary, ", must be at least ", kByteIds,
                      " for data.name \"text\", whose ids are bytes, 0 .. 255. Fix: "
                      "model.vocab_size=256"));
}

void check_data_settings(const RunConfig& config, Lines& lines) {
  const std::string dataset = effective_dataset(config);
  if (dataset != "synthetic" && config.data.synthetic_samples) {
    lines.push_back(cat("data.synthetic_samples is ", *config.data.synthetic_samples,
                        ", but data.name is ", quoted(dataset),
                        ". Fix: --max_train_samples to shorten it, or --dataset synthetic"));
  }
  const std::optional<int64_t> bits = config.data.token_bits;
  if (bits && *bits != 16 && *bits != 32) {
    lines.push_back(cat("data.token_bits is ", *bits, ", must be 16 or 32. Fix: data.token_bits=",
                        *bits < 24 ? 16 : 32));
  } else if (bits && dataset != "tokens") {
    lines.push_back(cat("data.token_bits is ", *bits, ", but data.name is ", quoted(dataset),
                        ", which has no token files. Fix: leave it out, or --dataset tokens"));
  }
  if (config.data.jpeg_scale != "exact" && !has_image_files(dataset)) {
    lines.push_back(cat("data.jpeg_scale is ", quoted(config.data.jpeg_scale),
                        ", but data.name is ", quoted(dataset),
                        ", which has no JPEG files. Fix: leave it out"));
  }
  if (dataset == "synthetic" && !config.data.directory.empty()) {
    lines.push_back(cat("data.directory is ", quoted(config.data.directory),
                        ", but data.name \"synthetic\" reads no files. Fix: leave it out"));
  }
}

void check_nesterov(const RunConfig& config, Lines& lines) {
  const OptimizerConfig& optimizer = config.optimizer;
  if (!optimizer.nesterov || (optimizer.name == "sgd" && optimizer.momentum > 0)) return;
  lines.push_back(
      cat("optimizer.nesterov is true, but needs sgd with momentum > 0: optimizer.name is ",
          quoted(optimizer.name), ", optimizer.momentum is ", optimizer.momentum,
          ". Fix: --optim sgd --momentum 0.9, or --no-nesterov"));
}

std::optional<int64_t> horizon_of(const RunConfig& config) {
  return config.schedule.total_steps ? config.schedule.total_steps : config.max_steps;
}

// Otherwise the first updates after the warm-up would jump.
void check_warmup_before_fall(const ScheduleConfig& schedule, Lines& lines) {
  const std::optional<std::vector<int64_t>> milestones = milestones_of(schedule);
  const int64_t first = schedule.type == "step"              ? schedule.step_size.value_or(0)
                        : milestones && !milestones->empty() ? milestones->front()
                                                             : 0;
  if (first == 0 || schedule.warmup_steps <= first) return;
  lines.push_back(cat("schedule.warmup_steps is ", schedule.warmup_steps, ", must be at most ",
                      first, ", where schedule.type ", quoted(schedule.type),
                      " first falls. Fix: --warmup_steps ", first));
}

void check_warmup(const RunConfig& config, Lines& lines) {
  const ScheduleConfig& schedule = config.schedule;
  if (schedule.warmup_steps == 0) return;
  if (schedule.type == "constant") {
    lines.push_back(cat("schedule.warmup_steps is ", schedule.warmup_steps,
                        ", but schedule.type \"constant\" has no warm-up. Fix: --lr_scheduler_type "
                        "constant_with_warmup, or --warmup_steps 0"));
    return;
  }
  if (schedule.type == "constant_with_warmup") return;
  if (schedule.type == "step" || schedule.type == "multistep") {
    check_warmup_before_fall(schedule, lines);
    return;
  }
  const std::optional<int64_t> horizon = horizon_of(config);
  if (!horizon || schedule.warmup_steps <= *horizon) return;
  lines.push_back(cat("schedule.warmup_steps is ", schedule.warmup_steps, ", must be at most ",
                      *horizon, ", where the decay of schedule.type ", quoted(schedule.type),
                      " ends. Fix: --warmup_steps ", *horizon / 10, ", or a larger ",
                      schedule.total_steps ? "schedule.total_steps" : "--max_steps"));
}

void check_decay(const RunConfig& config, Lines& lines) {
  const ScheduleConfig& schedule = config.schedule;
  const bool has_decay =
      schedule.type == "linear" || schedule.type == "cosine" || schedule.type == "wsd";
  if (has_decay || schedule.min_lr_ratio == 0) return;
  lines.push_back(cat("schedule.min_lr_ratio is ", schedule.min_lr_ratio, ", but schedule.type ",
                      quoted(schedule.type),
                      " never decays to it. Fix: --min_lr_ratio 0, or "
                      "--lr_scheduler_type cosine"));
}

// A setting that one schedule needs and the others do not have.
void check_own_setting(const ScheduleConfig& schedule, std::string_view type, std::string_view key,
                       std::string_view given, Lines& lines) {
  const Field& field = *find_field(key);
  if (schedule.type == type && given.empty()) {
    lines.push_back(cat(key, " is left out, but schedule.type ", quoted(type),
                        " needs it. Fix: set it, e.g. ", example_usage(field)));
  } else if (schedule.type != type && !given.empty()) {
    lines.push_back(cat(key, " is ", given, ", but schedule.type ", quoted(schedule.type),
                        " has no such setting. Fix: leave it out, or --lr_scheduler_type ", type));
  }
}

void check_falls(const RunConfig& config, Lines& lines) {
  const ScheduleConfig& schedule = config.schedule;
  const auto text = [](const std::optional<int64_t>& count) {
    return count ? cat(*count) : std::string();
  };
  check_own_setting(schedule, "step", "schedule.step_size", text(schedule.step_size), lines);
  check_own_setting(schedule, "multistep", "schedule.milestones", schedule.milestones, lines);
  check_own_setting(schedule, "wsd", "schedule.decay_steps", text(schedule.decay_steps), lines);
  if (!milestones_of(schedule)) {
    lines.push_back(cat("schedule.milestones is ", quoted(schedule.milestones),
                        ", must be rising numbers of updates above 0, comma separated. Fix: e.g. "
                        "schedule.milestones=32000,48000"));
  }
  const bool has_falls = schedule.type == "step" || schedule.type == "multistep";
  if (!has_falls && schedule.gamma != ScheduleConfig{}.gamma) {
    lines.push_back(cat("schedule.gamma is ", schedule.gamma, ", but schedule.type ",
                        quoted(schedule.type),
                        " has no such setting. Fix: leave it out, or --lr_scheduler_type step"));
  }
}

void check_decay_steps(const RunConfig& config, Lines& lines) {
  const ScheduleConfig& schedule = config.schedule;
  const std::optional<int64_t> horizon = horizon_of(config);
  if (schedule.type != "wsd" || !schedule.decay_steps || !horizon) return;
  if (*schedule.decay_steps + schedule.warmup_steps <= *horizon) return;
  lines.push_back(cat("schedule.decay_steps is ", *schedule.decay_steps, ", must be at most ",
                      *horizon - schedule.warmup_steps, ", the steps between the warm-up and ",
                      *horizon, ", where it ends. Fix: a smaller schedule.decay_steps or a larger ",
                      schedule.total_steps ? "schedule.total_steps" : "--max_steps"));
}

void check_device(const RunConfig& config, Lines& lines) {
  if (config.precision != "fp64" || config.device != "cuda") return;
  lines.push_back(
      "precision is \"fp64\", which runs on the CPU only, but device is \"cuda\". Fix: "
      "--device cpu, or another precision");
}

void check_resume(const RunConfig& config, Lines& lines) {
  const std::string& resume = config.resume_from_checkpoint;
  if (!config.overwrite_output_dir || (resume != "latest" && resume != "auto")) return;
  lines.push_back(cat("overwrite_output_dir would remove the run that resume_from_checkpoint ",
                      quoted(resume), " goes on with. Fix: give one of the two"));
}

void check_allowed_keys(const RunConfig& config, Lines& lines) {
  if (config.allow_config_change.empty()) return;
  for (const std::string& word : split(config.allow_config_change, ',')) {
    const std::string name = trimmed(word);
    if (find_field(normalized_name(name)) != nullptr) continue;
    lines.push_back(cat("allow_config_change names the unknown key ", quoted(name),
                        spelling_hint(name, false)));
  }
}

std::vector<Rule> rules() {
  return {
      {{"model.name", "model.n_layer", "model.n_head", "model.n_embd", "model.n_positions",
        "model.vocab_size", "model.dropout", "model.num_classes", "model.image_size"},
       check_model_sizes},
      {{"model.name", "data.name"}, check_model_and_data},
      {{"model.name", "model.n_positions", "data.sequence_length"}, check_sequence_length},
      {{"model.name", "data.name", "model.vocab_size"}, check_vocabulary},
      {{"model.name", "data.name", "data.synthetic_samples", "data.directory", "data.token_bits",
        "data.jpeg_scale"},
       check_data_settings},
      {{"optimizer.name", "optimizer.momentum", "optimizer.nesterov"}, check_nesterov},
      {{"schedule.type", "schedule.warmup_steps", "schedule.total_steps", "schedule.step_size",
        "schedule.milestones", "max_steps"},
       check_warmup},
      {{"schedule.type", "schedule.step_size", "schedule.milestones", "schedule.gamma",
        "schedule.decay_steps"},
       check_falls},
      {{"schedule.type", "schedule.warmup_steps", "schedule.decay_steps", "schedule.total_steps",
        "max_steps"},
       check_decay_steps},
      {{"schedule.type", "schedule.min_lr_ratio"}, check_decay},
      {{"precision", "device"}, check_device},
      {{"overwrite_output_dir", "resume_from_checkpoint"}, check_resume},
      {{"allow_config_change"}, check_allowed_keys},
  };
}

}  // namespace

std::vector<std::string> violations_of(const RunConfig& config,
                                       const std::set<std::string>& broken_keys) {
  Lines lines;
  std::set<std::string> broken = broken_keys;
  for (const Field& field : fields()) {
    const std::string key(field.key);
    const Value value = field.get(config);
    if (broken_keys.contains(key) || is_allowed(field, value)) continue;
    broken.insert(key);
    lines.push_back(cat(key, " is ", value_text(value), ", must be ", expected_text(field),
                        ". Fix: set it, e.g. ", example_usage(field)));
  }
  for (const Rule& rule : rules()) {
    const bool is_judgeable =
        std::none_of(rule.keys.begin(), rule.keys.end(),
                     [&](std::string_view key) { return broken.contains(std::string(key)); });
    if (is_judgeable) rule.check(config, lines);
  }
  return lines;
}

std::vector<std::string> validate(const RunConfig& config) { return violations_of(config, {}); }

}  // namespace assay::config
