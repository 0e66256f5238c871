// The device a run computes on, and the process-wide numeric settings that go with it.
#pragma once

#include <cstdint>
#include <string>

#include <ATen/core/Tensor.h>

#include "trainer/config/run_config.h"

namespace assay::step {

// Device of --device: auto takes CUDA where this build and this machine have it. Throws
// CouldNotRunError if cuda is asked for and cannot be used, with the reason.
// Each local rank takes the device of its number, or, where ranks may share devices, one in turn;
// throws LaunchError with both numbers if there are fewer.
c10::Device choose_device(const std::string& request, int64_t local_rank, bool may_share = false);

// Threads, deterministic algorithms, TF32 off (fp32 is the reference mode), cuDNN. Call once,
// before the first tensor operation: cuBLAS reads its workspace setting on first use.
// The CPU's threads are shared out over the local ranks.
void apply_numeric_settings(const config::RunConfig& config, const c10::Device& device,
                            int64_t local_world_size = 1);

// Seeds the CPU generator with all 64 bits of `seed` (its own seeding keeps only 32) and the
// device's generator. Draws nothing from other sources.
void seed_generators(uint64_t seed, const c10::Device& device);

// State of the default generators as lower-case hex, and back. Throws CheckpointError if the text
// is no such state.
std::string cpu_rng_hex();
std::string device_rng_hex(const c10::Device& device);  // empty on the CPU
void restore_cpu_rng(const std::string& hex);
void restore_device_rng(const c10::Device& device, const std::string& hex);

struct DeviceMemory {
  int64_t allocated_bytes = 0;
  int64_t peak_allocated_bytes = 0;
  int64_t reserved_bytes = 0;
};
DeviceMemory device_memory(const c10::Device& device);  // zeros on the CPU
void reset_peak_memory(const c10::Device& device);
void synchronize(const c10::Device& device);  // no-op on the CPU

}  // namespace assay::step
