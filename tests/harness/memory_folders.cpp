// The acceptance's own writes are durable; on a disk these tests would wait for it many times. What
// is tested is what is written, so temporary folders lie in memory where there is room.
#include <cstdlib>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/files.h"

namespace assay::harness {
namespace {

class MemoryFolders : public ::testing::Environment {
 public:
  void SetUp() override {
    constexpr uint64_t kNeededBytes = uint64_t{64} << 20;
    const std::string memory = "/dev/shm";
    const bool is_usable = std::getenv("TMPDIR") == nullptr && is_directory(memory) &&
                           access(memory.c_str(), W_OK) == 0 &&
                           disk_space(memory).free_bytes > kNeededBytes;
    if (is_usable) setenv("TMPDIR", memory.c_str(), 1);
  }
};

const ::testing::Environment* const kMemoryFolders =
    ::testing::AddGlobalTestEnvironment(new MemoryFolders);

}  // namespace
}  // namespace assay::harness
