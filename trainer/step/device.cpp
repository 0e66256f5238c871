#include "trainer/step/device.h"

#include <cstdlib>
#include <cstring>
#include <vector>

#include <ATen/CPUGeneratorImpl.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/torch.h>

#include "base/error.h"
#include "base/text.h"
#include "platform/environment.h"

namespace assay::step {
namespace {

// splitmix64 (Steele, Lea & Flood 2014, fig. 7): spreads a seed over a generator's whole state.
uint64_t splitmix64(uint64_t& state) {
  state += 0x9e3779b97f4a7c15ULL;
  uint64_t mixed = state;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9ULL;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebULL;
  return mixed ^ (mixed >> 31);
}

std::string tensor_hex(const at::Tensor& bytes) {
  const at::Tensor host = bytes.cpu().contiguous();
  return hex_encode({host.const_data_ptr<uint8_t>(), static_cast<size_t>(host.numel())});
}

at::Tensor hex_tensor(const std::string& hex, std::string_view what) {
  const auto bytes = hex_decode(hex);
  if (!bytes || bytes->empty()) {
    throw CheckpointError(cat("the ", what, " generator's state in the checkpoint is ",
                              hex.empty() ? "missing" : "not hexadecimal",
                              ". Fix: resume from another checkpoint of this device kind"));
  }
  at::Tensor tensor = torch::empty({static_cast<int64_t>(bytes->size())}, torch::kByte);
  std::memcpy(tensor.mutable_data_ptr<uint8_t>(), bytes->data(), bytes->size());
  return tensor;
}

void restore(at::Generator generator, const std::string& hex, std::string_view what) {
  const at::Tensor state = hex_tensor(hex, what);
  try {
    generator.set_state(state);
  } catch (const c10::Error& error) {
    throw CheckpointError(cat("the ", what, " generator's state in the checkpoint does not fit: ",
                              error.what_without_backtrace(),
                              ". Fix: resume with the LibTorch version that wrote it"));
  }
}

}  // namespace

c10::Device choose_device(const std::string& request, int64_t local_rank, bool may_share) {
  if (request == "cpu") return c10::Device(c10::kCPU);
  const bool has_cuda = torch::cuda::is_available();
  if (!has_cuda) {
    if (request == "auto") return c10::Device(c10::kCPU);
    throw CouldNotRunError(
        cat("--device cuda: no usable CUDA device (", torch::cuda::device_count(),
            " visible to LibTorch). Fix: run `assay doctor`, or use --device cpu"));
  }
  const auto count = static_cast<int64_t>(torch::cuda::device_count());
  if (local_rank >= count && !may_share) {
    throw LaunchError(cat("LOCAL_RANK is ", local_rank, " but ", count,
                          " CUDA device(s) are visible. Fix: start at most ", count,
                          " ranks on this host, let them share by --ddp_backend gloo, or use "
                          "--device cpu"));
  }
  return c10::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(local_rank % count));
}

void apply_numeric_settings(const config::RunConfig& config, const c10::Device& device,
                            int64_t local_world_size) {
  const int64_t share = std::max<int64_t>(platform::available_cpus() / local_world_size, 1);
  const int64_t threads = config.num_threads > 0 ? config.num_threads : share;
  at::set_num_threads(static_cast<int>(threads));
  at::Context& context = at::globalContext();
  context.setAllowTF32CuBLAS(false);
  context.setAllowTF32CuDNN(false);
  context.setDeterministicCuDNN(config.deterministic);
  context.setBenchmarkCuDNN(device.is_cuda() && !config.deterministic);
  context.setDeterministicAlgorithms(config.deterministic, /*warn_only=*/false);
  // Otherwise deterministic mode also fills every new tensor, at a cost and to no use here.
  context.setDeterministicFillUninitializedMemory(false);
  if (config.deterministic) setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*overwrite=*/0);
}

void seed_generators(uint64_t seed, const c10::Device& device) {
  torch::manual_seed(seed);
  // mt19937 is seeded from 32 bits, so that 1 and 1 + 2^32 would give one stream: write its 624
  // words ourselves. Layout of at::CPUGeneratorImpl's stored state (aten CPUGeneratorImpl.cpp):
  // u64 seed, i32 left, i32 seeded, u64 next, u64 state[624], then the cached normal samples.
  constexpr size_t kWordsOffset = 24;
  constexpr size_t kWordCount = 624;
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  at::Tensor state = generator.get_state().clone();
  uint8_t* bytes = state.mutable_data_ptr<uint8_t>();
  uint64_t mixer = seed;
  for (size_t i = 0; i < kWordCount; ++i) {
    const uint64_t word = splitmix64(mixer) >> 32;
    std::memcpy(bytes + kWordsOffset + i * sizeof(word), &word, sizeof(word));
  }
  generator.set_state(state);
  if (device.is_cuda()) torch::cuda::manual_seed(seed);
}

std::string cpu_rng_hex() { return tensor_hex(at::detail::getDefaultCPUGenerator().get_state()); }

std::string device_rng_hex(const c10::Device& device) {
  if (!device.is_cuda()) return "";
  return tensor_hex(at::globalContext().defaultGenerator(device).get_state());
}

void restore_cpu_rng(const std::string& hex) {
  restore(at::detail::getDefaultCPUGenerator(), hex, "CPU random");
}

void restore_device_rng(const c10::Device& device, const std::string& hex) {
  if (!device.is_cuda()) return;
  restore(at::globalContext().defaultGenerator(device), hex, "CUDA random");
}

DeviceMemory device_memory(const c10::Device& device) {
  DeviceMemory memory;
  if (!device.is_cuda()) return memory;
  const auto stats = at::getDeviceAllocator(device.type())->getDeviceStats(device.index());
  constexpr auto kAll = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  memory.allocated_bytes = stats.allocated_bytes[kAll].current;
  memory.peak_allocated_bytes = stats.allocated_bytes[kAll].peak;
  memory.reserved_bytes = stats.reserved_bytes[kAll].current;
  return memory;
}

void reset_peak_memory(const c10::Device& device) {
  if (device.is_cuda()) at::getDeviceAllocator(device.type())->resetPeakStats(device.index());
}

void synchronize(const c10::Device& device) {
  if (device.is_cuda())
    c10::impl::VirtualGuardImpl(device.type()).synchronizeDevice(device.index());
}

}  // namespace assay::step
