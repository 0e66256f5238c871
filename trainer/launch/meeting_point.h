// Where the ranks of a job meet when their starter does not say: from Slurm's and MPI's variables.
// Torch-free; opens no socket.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/launch/rank_env.h"

namespace assay::launch {

// "n[1-3,07-08],gpu5" -> n1 n2 n3 n07 n08 gpu5, the first `limit` of them. Throws LaunchError for
// text that is no such list.
std::vector<std::string> expand_host_list(const std::string& text, size_t limit = 1 << 16);

// "2(x3),1" -> 2 2 2 1: tasks by node. Throws LaunchError.
std::vector<int64_t> expand_task_counts(const std::string& text);

// Fills master_addr, master_port and local_world_size of `env` where its source leaves them open.
//   Slurm     the step's first host; 15000 + (job + step) % 10000, the same on every rank
//   Open MPI  loopback if all ranks are on one host; a port from the job's own number
//   MPICH     loopback if all ranks are on one host; port 29500
// Throws LaunchError where ranks on several hosts need a MASTER_ADDR that nobody gave.
void fill_meeting_point(RankEnv& env, const Lookup& lookup);

}  // namespace assay::launch
