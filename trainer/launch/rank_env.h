// This process's place in a job, from the environment that its launcher left. Torch-free; opens
// no socket.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace assay::launch {

struct RankEnv {
  int64_t rank = 0;
  int64_t world_size = 1;
  int64_t local_rank = 0;
  int64_t local_world_size = 1;
  std::string master_addr = "127.0.0.1";
  int64_t master_port = 0;                // 0: none given
  int64_t restart_count = 0;              // TORCHELASTIC_RESTART_COUNT
  bool has_agent_store = false;           // torchrun's agent owns the store at master_port
  std::string error_file;                 // TORCHELASTIC_ERROR_FILE, empty: none
  std::string source = "single process";  // torchrun | PyTorchJob | Open MPI | MPICH | Slurm
};

// Looks a variable up; nullptr if unset.
using Lookup = std::function<const char*(const char*)>;

// Tries torchrun, PyTorchJob, Open MPI, MPICH and Slurm in this order. Throws LaunchError naming
// variable, value (quoted) and what is expected for anything contradictory or out of range.
RankEnv resolve_rank_env(const Lookup& lookup);

// What assay launch hands to its ranks besides torchrun's variables: the descriptor of a listening
// socket for the store, to rank 0; and error files that are files in memory.
inline constexpr const char* kStoreSocketVariable = "ASSAY_STORE_FD";
inline constexpr const char* kMemoryErrorFilePrefix = "/proc/self/fd/";

// Writes torchrun's error file, so that it shows our message as the root cause. Never throws: the
// run has already failed.
void write_error_file(const std::string& path, const std::string& message) noexcept;

}  // namespace assay::launch
