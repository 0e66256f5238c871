// From one traced step to what a run needs: device and host memory, checkpoint room, key-value
// cache, and the rungs to take where it does not fit. Pure; no torch.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "trainer/config/run_config.h"
#include "trainer/estimate/traced_step.h"

namespace assay::estimate {

// Device memory that LibTorch's allocator does not see: the CUDA context and loaded kernels.
inline constexpr int64_t kContextBytes = int64_t{600} << 20;
// A prediction may be this much too low; a run is said to fit only with that much left.
inline constexpr double kHeadroomFraction = 0.05;

// The highest of loading, first and later steps.
int64_t peak_bytes(const StepTrace& trace);
// With headroom and context, what must be there. `is_gpu` false: without the context.
int64_t needed_bytes(const StepTrace& trace, bool is_gpu);

struct HostMemory {
  int64_t program_bytes = 0;     // libraries and their start-up
  int64_t weights_bytes = 0;     // drawn on the host, then moved
  int64_t loader_bytes = 0;      // batches ready and in work
  int64_t checkpoint_bytes = 0;  // copy of the state while a checkpoint is written
  int64_t total_bytes() const;
};
HostMemory host_memory(const StepTrace& trace, const config::RunConfig& config, bool is_gpu,
                       int64_t num_workers);

struct CheckpointRoom {
  int64_t bytes_each = 0;
  int64_t count = 0;  // kept at a time, and the one being written
  int64_t total_bytes() const { return bytes_each * count; }
};
// `max_steps` 0: not known, then two are counted besides the limit of the configuration.
CheckpointRoom checkpoint_room(const StepTrace& trace, const config::RunConfig& config,
                               int64_t max_steps);

struct KvCacheRow {
  int64_t context = 0;
  int64_t requests = 0;
  int64_t weights_bytes = 0;
  int64_t cache_bytes = 0;
};
// Weights and cache in the given element size, for every number of concurrent requests.
std::vector<KvCacheRow> kv_cache(const StepTrace& trace, int64_t context,
                                 const std::vector<int64_t>& requests, int64_t element_bytes);

// A step down at a constant global batch: settings that change, and what that needs.
struct Rung {
  std::string name;                // "as configured", "accumulate", ...
  std::vector<std::string> words;  // options to add; empty for the first
  bool is_available = true;        // false: this release's trainer does not have it
  int64_t peak_bytes = 0;          // predicted; 0 if not available
  int64_t needed_bytes = 0;
};

// The ladder from `config` down, in the order accumulate, recompute, reduced precision, shorter
// sequence; each rung keeps those above it. Traced only as far as it is walked. Thread-compatible.
class Ladder {
 public:
  // Traces a configuration, given the words that change it; throws as parse_train_arguments does.
  using Trace = std::function<StepTrace(const std::vector<std::string>& words)>;
  Ladder(const config::RunConfig& config, const StepTrace& as_configured, bool is_gpu, Trace trace);

  // The first rung whose need is at most `bytes`; nothing if even the last needs more. Rungs that
  // are not available are passed over; `missing` then names them.
  std::optional<Rung> first_that_fits(int64_t bytes, std::vector<std::string>* missing);
  // Every rung, as far as they were walked.
  const std::vector<Rung>& walked() const { return rungs_; }

 private:
  struct Setting {
    std::string name;
    std::vector<std::string> words;
    bool is_available = true;
  };
  void add_settings(const config::RunConfig& config, const StepTrace& trace);
  bool walk();  // adds the next rung; false at the end

  bool is_gpu_;
  Trace trace_;
  std::vector<Setting> settings_;
  std::vector<Rung> rungs_;
};

}  // namespace assay::estimate
