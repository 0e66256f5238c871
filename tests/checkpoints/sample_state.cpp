#include "tests/checkpoints/sample_state.h"

#include <cstdlib>
#include <fstream>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

namespace assay::checkpoints {
namespace {

// A commit syncs nine times; on a disk the many commits of these tests would take minutes, in
// memory they take seconds. What is tested is the order of the calls, not the disk.
class MemoryFolders : public testing::Environment {
 public:
  void SetUp() override {
    constexpr uint64_t kNeededBytes = uint64_t{256} << 20;
    const std::string memory = "/dev/shm";
    const bool is_usable = std::getenv("TMPDIR") == nullptr && is_directory(memory) &&
                           ::access(memory.c_str(), W_OK) == 0 &&
                           disk_space(memory).free_bytes > kNeededBytes;
    if (is_usable) ::setenv("TMPDIR", memory.c_str(), 1);
  }
};
const testing::Environment* const kMemoryFolders =
    testing::AddGlobalTestEnvironment(new MemoryFolders);

std::vector<float> counted(size_t count, float start) {
  std::vector<float> values;
  for (size_t index = 0; index < count; ++index)
    values.push_back(start + static_cast<float>(index));
  return values;
}

}  // namespace

TensorView SampleState::add(const std::string& name, const std::string& dtype,
                            std::vector<int64_t> shape, const void* bytes, size_t count) {
  const auto* begin = static_cast<const unsigned char*>(bytes);
  storage_.emplace_back(begin, begin + count);
  return {.name = name,
          .dtype = dtype,
          .shape = std::move(shape),
          .bytes = storage_.back().data(),
          .byte_count = count};
}

SampleState::SampleState(int64_t step, int64_t rank_count) {
  const auto start = static_cast<float>(step) * 1000.0F;
  const auto floats = [&](const std::string& name, std::vector<int64_t> shape, float offset) {
    size_t count = 1;
    for (const int64_t dimension : shape) count *= static_cast<size_t>(dimension);
    const std::vector<float> values = counted(count, start + offset);
    return add(name, "F32", std::move(shape), values.data(), values.size() * sizeof(float));
  };
  parts.model.push_back(floats("conv1.weight", {2, 1, 3, 3}, 0));
  parts.model.push_back(floats("conv1.bias", {2}, 100));
  const int64_t batches = step;
  parts.model.push_back(add("bn1.num_batches_tracked", "I64", {}, &batches, sizeof batches));
  for (const std::string kind : {"exp_avg", "exp_avg_sq"}) {
    parts.optimizer.push_back(floats(kind + "/conv1.weight", {2, 1, 3, 3}, 200));
    parts.optimizer.push_back(floats(kind + "/conv1.bias", {2}, 300));
  }
  parts.trainer = {.step = step,
                   .updates = step - 1,
                   .skipped = 1,
                   .samples_seen = step * 8,
                   .tokens_seen = 0,
                   .epoch = 1,
                   .samples_in_epoch = step * 8 % 100,
                   .schedule_type = "cosine",
                   .schedule_total_steps = 35,
                   .last_learning_rate = 0.1 / 3,
                   .last_loss = 2.3 / static_cast<double>(step),
                   .optimizer = "adamw",
                   .scaler = ScalerState{.scale = 65536.0, .growth_tracker = 7},
                   .best = BestEvaluation{.step = 5, .loss = 1.0 / 3},
                   .run_id = "run-a",
                   .config_json = "{\n  \"max_steps\": 35\n}\n"};
  for (int64_t rank = 0; rank < rank_count; ++rank) {
    parts.ranks.push_back({.rank = rank,
                           .cpu_rng_hex = cat("00ff10", rank % 10, "0", step % 10, "a"),
                           .cuda_rng_hex = ""});
  }
}

void SampleState::set_float(std::vector<TensorView>& tensors, const std::string& name, size_t index,
                            float value) {
  for (TensorView& tensor : tensors) {
    if (tensor.name != name) continue;
    const TensorView copy =
        add(tensor.name, tensor.dtype, tensor.shape, tensor.bytes, tensor.byte_count);
    std::memcpy(storage_.back().data() + index * sizeof value, &value, sizeof value);
    tensor = copy;
    return;
  }
  ADD_FAILURE() << "no tensor " << name;
}

CommitRequest request_for(const std::string& run_dir, const SampleState& state) {
  CommitRequest request;
  request.run_dir = run_dir;
  request.parts = state.parts;
  request.world_size = static_cast<int64_t>(state.parts.ranks.size());
  request.config_digest = "config-1";
  request.data_digest = "data-1";
  request.versions = {{"assay", "0.1.0"}, {"libtorch", "2.11.0"}};
  return request;
}

std::string commit_sample(const std::string& run_dir, int64_t step) {
  const SampleState state(step);
  return commit_checkpoint(request_for(run_dir, state)).path;
}

void write_plain(const std::string& path, std::string_view text) {
  std::ofstream stream(path, std::ios::binary | std::ios::trunc);
  stream.write(text.data(), static_cast<std::streamsize>(text.size()));
  ASSERT_TRUE(stream.good()) << path;
}

void flip_byte(const std::string& path, uint64_t offset, unsigned char mask) {
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(file, 0) << path;
  unsigned char byte = 0;
  ASSERT_EQ(::pread(file, &byte, 1, static_cast<off_t>(offset)), 1) << path;
  byte ^= mask;
  ASSERT_EQ(::pwrite(file, &byte, 1, static_cast<off_t>(offset)), 1) << path;
  ::close(file);
}

std::vector<std::string> litter_in(const std::string& run_dir) {
  std::vector<std::string> litter;
  for (const std::string& name : list_directory(run_dir)) {
    if (name.starts_with(".")) litter.push_back(name);
  }
  return litter;
}

}  // namespace assay::checkpoints
