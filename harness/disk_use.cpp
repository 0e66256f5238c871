#include "harness/disk_use.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sys/stat.h>
#include <system_error>
#include <tuple>

#include "base/clock.h"
#include "base/digest.h"
#include "base/text.h"

namespace assay::harness {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kWeightsBytes = uint64_t{16} << 20;  // smaller files do not fill a disk
constexpr size_t kProbeBytes = size_t{1} << 20;

struct WeightFile {
  std::string path;
  uint64_t bytes = 0;
};

bool is_weight_name(const fs::path& path) {
  static const std::vector<std::string> endings = {".safetensors", ".pt",   ".pth", ".bin",
                                                   ".ckpt",        ".gguf", ".onnx"};
  return std::find(endings.begin(), endings.end(), path.extension().string()) != endings.end();
}

PlaceUse measure_place(const std::string& place, double seconds, std::vector<WeightFile>& weights) {
  PlaceUse use;
  use.path = place;
  struct stat root {};
  if (lstat(place.c_str(), &root) != 0 || !S_ISDIR(root.st_mode)) return use;
  const double end = monotonic_seconds() + seconds;
  std::error_code problem;
  fs::recursive_directory_iterator walk(place, fs::directory_options::skip_permission_denied,
                                        problem);
  // A folder that vanishes or cannot be read is left out: this is a survey, not a proof.
  for (; !problem && walk != fs::recursive_directory_iterator(); walk.increment(problem)) {
    if (monotonic_seconds() > end) {
      use.is_cut = true;
      break;
    }
    struct stat facts {};
    if (lstat(walk->path().c_str(), &facts) != 0) continue;
    if (S_ISDIR(facts.st_mode) && facts.st_dev != root.st_dev) walk.disable_recursion_pending();
    if (!S_ISREG(facts.st_mode)) continue;
    use.bytes += static_cast<uint64_t>(facts.st_blocks) * 512;  // stat(2): blocks of 512 bytes
    const auto bytes = static_cast<uint64_t>(facts.st_size);
    if (bytes >= kWeightsBytes && is_weight_name(walk->path())) {
      weights.push_back({walk->path().string(), bytes});
    }
  }
  return use;
}

// Digest of the first and the last MiB: enough to suspect, not to delete.
std::string probe_digest(const WeightFile& file) {
  std::ifstream stream(file.path, std::ios::binary);
  std::string head(kProbeBytes, '\0');
  std::string tail(kProbeBytes, '\0');
  stream.read(head.data(), static_cast<std::streamsize>(kProbeBytes));
  stream.seekg(-static_cast<std::streamoff>(kProbeBytes), std::ios::end);
  stream.read(tail.data(), static_cast<std::streamsize>(kProbeBytes));
  if (!stream) return "";
  return xxh3_hex((head + tail).data(), 2 * kProbeBytes);
}

std::vector<std::string> find_duplicates(const std::vector<WeightFile>& weights) {
  std::map<uint64_t, std::vector<WeightFile>> by_size;
  for (const WeightFile& file : weights) by_size[file.bytes].push_back(file);
  std::vector<std::string> found;
  for (const auto& [bytes, files] : by_size) {
    if (files.size() < 2) continue;
    std::map<std::string, std::string> first_of_digest;
    for (const WeightFile& file : files) {
      const std::string digest = probe_digest(file);
      if (digest.empty()) continue;
      const auto [place, is_new] = first_of_digest.emplace(digest, file.path);
      if (!is_new && place->second != file.path) {
        found.push_back(cat(place->second, " = ", file.path, " (", bytes_text(bytes), ")"));
      }
    }
  }
  return found;
}

std::vector<std::string> known_places() {
  std::vector<std::string> places = {"/var/log", "/var/cache/apt", "/tmp", "/opt/conda/pkgs"};
  const char* home = std::getenv("HOME");
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && *cache != '\0') {
    places.emplace_back(cache);
  } else if (home != nullptr && *home != '\0') {
    places.push_back(cat(home, "/.cache"));
  }
  for (const char* name : {"HF_HOME", "TORCH_HOME", "PIP_CACHE_DIR", "ASSAY_CACHE"}) {
    const char* value = std::getenv(name);
    if (value != nullptr && *value != '\0') places.emplace_back(value);
  }
  return places;
}

}  // namespace

DiskUse measure_disk_use(const std::vector<std::string>& more, double seconds_each) {
  std::vector<std::string> places = known_places();
  places.insert(places.end(), more.begin(), more.end());
  std::sort(places.begin(), places.end());
  places.erase(std::unique(places.begin(), places.end()), places.end());
  DiskUse use;
  std::vector<WeightFile> weights;
  for (const std::string& place : places) {
    PlaceUse one = measure_place(place, seconds_each, weights);
    if (one.bytes > 0 || one.is_cut) use.places.push_back(std::move(one));
  }
  std::sort(use.places.begin(), use.places.end(), [](const PlaceUse& a, const PlaceUse& b) {
    return std::tie(b.bytes, a.path) < std::tie(a.bytes, b.path);
  });
  use.duplicate_weights = find_duplicates(weights);
  return use;
}

}  // namespace assay::harness
