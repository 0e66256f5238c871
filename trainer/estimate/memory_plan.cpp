#include "trainer/estimate/memory_plan.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "trainer/config/later_release.h"

namespace assay::estimate {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
// Resident memory of the trainer before its data and weights. On the CPU measured as host_rss_bytes
// of LeNet-5 at batch 8; with CUDA, cuDNN and cuBLAS loaded a figure to plan with.
constexpr int64_t kCpuProgramBytes = 375 * kMiB;
constexpr int64_t kGpuProgramBytes = 1100 * kMiB;
// On the CPU oneDNN keeps turned copies and the C library keeps what was freed: ResNet-18 and -50
// at batch 8 had 1.25 and 1.23 times the traced peak resident, GPT-2 1.0.
constexpr double kCpuOverhead = 1.25;
// Headers, manifest, trainer state and random generators of a checkpoint, with a margin.
constexpr int64_t kCheckpointOverheadBytes = 64 * 1024;
constexpr int64_t kShortestSequence = 64;

int64_t of_kind(const BytesByKind& bytes, MemoryKind kind) {
  return bytes[static_cast<size_t>(kind)];
}

int64_t state_bytes(const StepTrace& trace) {
  return of_kind(trace.state, MemoryKind::kWeights) + of_kind(trace.state, MemoryKind::kOptimizer);
}

}  // namespace

int64_t peak_bytes(const StepTrace& trace) {
  return std::max({trace.load_bytes, trace.first_peak.bytes, trace.steady_peak.bytes});
}

int64_t needed_bytes(const StepTrace& trace, bool is_gpu) {
  const double peak = static_cast<double>(peak_bytes(trace)) * (1.0 + kHeadroomFraction);
  return static_cast<int64_t>(peak) + (is_gpu ? kContextBytes : 0);
}

int64_t HostMemory::total_bytes() const {
  return program_bytes + std::max(weights_bytes, checkpoint_bytes) + loader_bytes;
}

HostMemory host_memory(const StepTrace& trace, const config::RunConfig& config, bool is_gpu,
                       int64_t num_workers) {
  HostMemory host;
  host.program_bytes = is_gpu ? kGpuProgramBytes : kCpuProgramBytes;
  // On the CPU the state lies in host memory anyway and is written from there.
  const auto on_cpu = static_cast<int64_t>(kCpuOverhead * static_cast<double>(peak_bytes(trace)));
  host.weights_bytes = is_gpu ? of_kind(trace.state, MemoryKind::kWeights) : on_cpu;
  host.checkpoint_bytes = is_gpu ? state_bytes(trace) : on_cpu;
  // Batches that are ready, one in each worker's hands, and the two that the step holds.
  const int64_t batches = num_workers * config.data.prefetch_factor + num_workers + 2;
  host.loader_bytes = batches * trace.batch_host_bytes;
  return host;
}

CheckpointRoom checkpoint_room(const StepTrace& trace, const config::RunConfig& config,
                               int64_t max_steps) {
  CheckpointRoom room;
  room.bytes_each = of_kind(trace.requested, MemoryKind::kWeights) +
                    of_kind(trace.requested, MemoryKind::kOptimizer) + kCheckpointOverheadBytes;
  const int64_t interval = config.checkpoint.save_steps;
  const int64_t limit = config.checkpoint.save_total_limit;
  int64_t saves = 1;  // the last step is always saved
  if (interval > 0 && max_steps > 0) saves = (max_steps + interval - 1) / interval;
  if (interval > 0 && max_steps == 0) saves = std::max<int64_t>(limit, 2);
  // Rotation spares the best evaluation's checkpoint and comes after the new one is written.
  room.count = limit > 0 ? std::min(saves, limit + 2) : saves;
  return room;
}

std::vector<KvCacheRow> kv_cache(const StepTrace& trace, int64_t context,
                                 const std::vector<int64_t>& requests, int64_t element_bytes) {
  std::vector<KvCacheRow> rows;
  if (trace.kv_elements_per_token == 0) return rows;
  for (const int64_t count : requests) {
    rows.push_back({.context = context,
                    .requests = count,
                    .weights_bytes = trace.parameters * element_bytes,
                    .cache_bytes = trace.kv_elements_per_token * context * count * element_bytes});
  }
  return rows;
}

Ladder::Ladder(const config::RunConfig& config, const StepTrace& as_configured, bool is_gpu,
               Trace trace)
    : is_gpu_(is_gpu), trace_(std::move(trace)) {
  rungs_.push_back({.name = "as configured",
                    .words = {},
                    .peak_bytes = peak_bytes(as_configured),
                    .needed_bytes = needed_bytes(as_configured, is_gpu)});
  add_settings(config, as_configured);
}

void Ladder::add_settings(const config::RunConfig& config, const StepTrace& trace) {
  int64_t micro_batch = config.batch_size;
  int64_t accumulation = config.gradient_accumulation_steps;
  std::vector<std::string> batch_words;
  while (micro_batch % 2 == 0) {
    micro_batch /= 2;
    accumulation *= 2;
    batch_words = {cat("--batch_size=", micro_batch),
                   cat("--gradient_accumulation_steps=", accumulation)};
    settings_.push_back({"accumulate", batch_words});
  }
  std::vector<std::string> words = batch_words;
  const bool has_recompute = config::find_later_option("gradient_checkpointing") == nullptr;
  std::vector<std::string> with_recompute = words;
  with_recompute.push_back("--gradient_checkpointing");
  settings_.push_back({"recompute", with_recompute, has_recompute});
  if (has_recompute) words = with_recompute;
  if (config.precision == "fp32") {
    words.push_back("--bf16");
    settings_.push_back({"reduced precision", words});
  }
  if (!trace.is_language_model || trace.samples == 0) return;
  for (int64_t length = trace.tokens / trace.samples / 2; length >= kShortestSequence;
       length /= 2) {
    std::vector<std::string> shorter = words;
    shorter.push_back(cat("data.sequence_length=", length));
    settings_.push_back({"shorter sequence", shorter});
  }
}

bool Ladder::walk() {
  const size_t next = rungs_.size() - 1;
  if (next >= settings_.size()) return false;
  const Setting& setting = settings_[next];
  Rung rung{.name = setting.name, .words = setting.words, .is_available = setting.is_available};
  if (setting.is_available) {
    const StepTrace trace = trace_(setting.words);
    rung.peak_bytes = peak_bytes(trace);
    rung.needed_bytes = needed_bytes(trace, is_gpu_);
  }
  rungs_.push_back(rung);
  return true;
}

std::optional<Rung> Ladder::first_that_fits(int64_t bytes, std::vector<std::string>* missing) {
  for (size_t i = 0; i < rungs_.size() || walk(); ++i) {
    const Rung& rung = rungs_[i];
    if (!rung.is_available) {
      missing->push_back(rung.name);
    } else if (rung.needed_bytes <= bytes) {
      return rung;
    }
  }
  return std::nullopt;
}

}  // namespace assay::estimate
