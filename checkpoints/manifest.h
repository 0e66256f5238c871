// manifest.json: what a committed checkpoint holds, with size and checksum of every file and every
// tensor, and last its own digest. Written last; without it a folder is not a checkpoint.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoints/safetensors.h"

namespace assay::checkpoints {

inline constexpr int64_t kFormatVersion = 1;  // part of the format

struct Manifest {
  int64_t format_version = kFormatVersion;
  int64_t step = 0;
  int64_t world_size = 1;
  std::string run_id;
  std::string created_utc;
  std::string config_digest;                            // identity_digest of the configuration
  std::string data_digest;                              // OpenedData::digest
  std::string state_digest;                             // state_digest() over the parts
  std::map<std::string, std::string> state_components;  // component -> SHA-256, see state_digest.h
  std::map<std::string, std::string> versions;          // assay, libtorch, cuda, ...
  std::vector<WrittenFile> files;  // every file but the manifest, sorted by name
};

std::string manifest_to_json(const Manifest& manifest);  // with "digest" as last key
// Checks the digest, the version and every name (no separators, no "..", no duplicates). Throws
// CheckpointError naming `origin`.
Manifest manifest_from_json(std::string_view text, const std::string& origin);

}  // namespace assay::checkpoints
