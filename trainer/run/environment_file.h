// environment.json: where and with what a run was made. Torch-free.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace assay::run {

struct EnvironmentRequest {
  std::string run_dir;
  std::vector<std::string> command;  // as typed
  std::string device;                // "cpu", "cuda:0"
  int64_t world_size = 1;
  int64_t num_threads = 1;
  int64_t num_workers = 0;
  std::map<std::string, std::string>
      versions;                             // assay, commit, libtorch, cuda, cudnn, nccl, compiler
  std::map<std::string, std::string> data;  // name, digest, train_samples, eval_samples
};

// Writes the platform record with these fields and the armed fault points. Never copies environment
// variables into the file. Throws FileError.
void write_environment(const EnvironmentRequest& request);

}  // namespace assay::run
