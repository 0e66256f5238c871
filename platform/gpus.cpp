#include "platform/gpus.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <utility>
#include <vector>

#include "base/text.h"
#include "platform/nvml.h"

namespace assay::platform {
namespace {

constexpr int64_t kVendorNvidia = 0x10de;
constexpr int64_t kClassDisplay = 0x03;  // upper byte of the PCI class: VGA, 3D, other display

// Display class of NVIDIA only: the same cards carry audio and USB functions too.
std::vector<std::string> pci_gpus(const Roots& roots) {
  const std::string folder = "/sys/bus/pci/devices";
  std::vector<std::string> addresses;
  for (const std::string& name : list_names(roots, folder)) {
    const std::optional<int64_t> vendor = read_integer(roots, cat(folder, "/", name, "/vendor"));
    const std::optional<int64_t> kind = read_integer(roots, cat(folder, "/", name, "/class"));
    if (vendor == kVendorNvidia && kind && (*kind >> 16) == kClassDisplay) {
      addresses.push_back(name);
    }
  }
  return addresses;
}

// A container may be given /dev/nvidia3 alone, so any number counts.
std::vector<std::string> device_files(const Roots& roots) {
  const std::string prefix = "nvidia";
  std::vector<std::string> paths;
  for (const std::string& name : list_names(roots, "/dev")) {
    if (name.rfind(prefix, 0) == 0 && parse_uint64(name.substr(prefix.size()))) {
      paths.push_back("/dev/" + name);
    }
  }
  return paths;
}

bool is_version(std::string_view word) {
  if (word.empty() || word.find('.') == std::string_view::npos) return false;
  if (std::isdigit(static_cast<unsigned char>(word.front())) == 0) return false;
  return std::all_of(word.begin(), word.end(), [](unsigned char letter) {
    return std::isdigit(letter) != 0 || letter == '.';
  });
}

}  // namespace

std::string driver_version_in(std::string_view text) {
  const std::vector<std::string> words = words_of(keyed_value(text, "NVRM version").value_or(""));
  const auto found = std::find_if(words.begin(), words.end(), is_version);
  return found == words.end() ? std::string() : *found;
}

void read_gpus(const Roots& roots, Environment& environment) {
  environment.gpu_devices = pci_gpus(roots);
  for (std::string& path : device_files(roots)) {
    environment.gpu_devices.push_back(std::move(path));
  }
  NvmlFacts nvml = read_nvml(roots.nvml_library);
  environment.is_gpu_present = !environment.gpu_devices.empty() || !nvml.gpus.empty();
  environment.is_nvml_usable = nvml.is_usable;
  environment.driver_version =
      nvml.driver_version.empty()
          ? driver_version_in(read_text(roots, "/proc/driver/nvidia/version").value_or(""))
          : nvml.driver_version;
  environment.driver_cuda_version = nvml.driver_cuda_version;
  environment.topology = std::move(nvml.topology);
  environment.gpus = std::move(nvml.gpus);
  for (GpuFacts& gpu : environment.gpus) {
    const std::optional<int64_t> node =
        read_integer(roots, cat("/sys/bus/pci/devices/", gpu.pci_bus_id, "/numa_node"));
    gpu.numa_node = node.value_or(-1);
  }
  if (!environment.is_gpu_present) return;
  environment.nvml_problem = nvml.problem;
  if (environment.is_nvml_usable && environment.gpus.empty() && nvml.problem.empty()) {
    environment.nvml_problem = "the driver shows no GPU to this process";
  }
}

}  // namespace assay::platform
