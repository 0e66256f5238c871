#include "platform/nvml.h"

#include <algorithm>
#include <array>
#include <cctype>

#include <unistd.h>

#include "base/text.h"
#include "platform/nvml_library.h"

namespace assay::platform {
namespace {

using nvml::Device;
using nvml::Library;

constexpr size_t kTextRoom = 96;  // the longest text that NVML promises, UUID and name included

int64_t unsigned_of(const Library& library, Device device, const char* function) {
  unsigned value = 0;
  return library.call<nvml::DeviceUnsigned>(function, device, &value) == nvml::kSuccess
             ? int64_t{value}
             : 0;
}

int64_t unsigned_of(const Library& library, Device device, const char* function, unsigned kind) {
  unsigned value = 0;
  return library.call<nvml::DeviceKindUnsigned>(function, device, kind, &value) == nvml::kSuccess
             ? int64_t{value}
             : 0;
}

std::string text_of(const Library& library, Device device, const char* function) {
  std::array<char, kTextRoom> text = {};
  const int code = library.call<nvml::DeviceText>(function, device, text.data(),
                                                  static_cast<unsigned>(text.size() - 1));
  return code == nvml::kSuccess ? std::string(text.data()) : std::string();
}

std::string mode_text(int code, unsigned mode) {
  if (code != nvml::kSuccess) return {};
  return mode == 0 ? "disabled" : "enabled";
}

// NVML writes eight digits of the domain in capitals, the kernel four in small letters.
std::string kernel_address(const nvml::PciAddress& pci) {
  const size_t length = static_cast<size_t>(std::find(std::begin(pci.id), std::end(pci.id), '\0') -
                                            std::begin(pci.id));
  std::string id(pci.id, length);
  if (id.size() == 16 && id.rfind("0000", 0) == 0) id.erase(0, 4);
  std::transform(id.begin(), id.end(), id.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return id;
}

std::string address_of(const Library& library, Device device) {
  nvml::PciAddress pci = {};
  const int code = library.call<nvml::DevicePci>("nvmlDeviceGetPciInfo_v3", device, &pci);
  return code == nvml::kSuccess ? kernel_address(pci) : std::string();
}

// The list may grow between two calls: ask again with the room that is asked for, a few times.
std::vector<int64_t> other_processes(const Library& library, Device device) {
  std::vector<nvml::Process> processes(32);
  for (int attempt = 0; attempt < 4; ++attempt) {
    unsigned count = static_cast<unsigned>(processes.size());
    const int code = library.call<nvml::DeviceProcesses>("nvmlDeviceGetComputeRunningProcesses_v3",
                                                         device, &count, processes.data());
    if (code == nvml::kInsufficientSize) {
      processes.resize(size_t{count} + 32);
      continue;
    }
    if (code != nvml::kSuccess) break;
    processes.resize(std::min(size_t{count}, processes.size()));
    std::vector<int64_t> ids;
    for (const nvml::Process& process : processes) {
      if (int64_t{process.pid} != int64_t{getpid()}) ids.push_back(int64_t{process.pid});
    }
    return ids;
  }
  return {};
}

void read_modes(const Library& library, Device device, GpuFacts& gpu) {
  unsigned now = 0;
  unsigned pending = 0;
  int code = library.call<nvml::DeviceTwoUnsigned>("nvmlDeviceGetEccMode", device, &now, &pending);
  gpu.ecc_mode = mode_text(code, now);
  code = library.call<nvml::DeviceTwoUnsigned>("nvmlDeviceGetMigMode", device, &now, &pending);
  gpu.mig_mode = mode_text(code, now);
  code = library.call<nvml::DeviceUnsigned>("nvmlDeviceGetPersistenceMode", device, &now);
  gpu.persistence_mode = mode_text(code, now);
  unsigned long long errors = 0;
  code = library.call<nvml::DeviceErrors>("nvmlDeviceGetTotalEccErrors", device,
                                          nvml::kErrorsUncorrected, nvml::kCountSinceDriverLoad,
                                          &errors);
  if (code == nvml::kSuccess) gpu.uncorrected_ecc_errors = static_cast<int64_t>(errors);
}

GpuFacts read_gpu(const Library& library, Device device, unsigned index) {
  GpuFacts gpu;
  gpu.index = int64_t{index};
  gpu.name = text_of(library, device, "nvmlDeviceGetName");
  gpu.uuid = text_of(library, device, "nvmlDeviceGetUUID");
  gpu.pci_bus_id = address_of(library, device);
  nvml::MemoryUse memory = {};
  if (library.call<nvml::DeviceMemory>("nvmlDeviceGetMemoryInfo", device, &memory) ==
      nvml::kSuccess) {
    gpu.memory_bytes = static_cast<int64_t>(memory.total);
    gpu.used_bytes = static_cast<int64_t>(memory.used);
  }
  int major = 0;
  int minor = 0;
  if (library.call<nvml::DeviceTwoSigned>("nvmlDeviceGetCudaComputeCapability", device, &major,
                                          &minor) == nvml::kSuccess) {
    gpu.compute_major = major;
    gpu.compute_minor = minor;
  }
  gpu.pcie_generation_now = unsigned_of(library, device, "nvmlDeviceGetCurrPcieLinkGeneration");
  gpu.pcie_generation_max = unsigned_of(library, device, "nvmlDeviceGetMaxPcieLinkGeneration");
  gpu.pcie_width_now = unsigned_of(library, device, "nvmlDeviceGetCurrPcieLinkWidth");
  gpu.pcie_width_max = unsigned_of(library, device, "nvmlDeviceGetMaxPcieLinkWidth");
  gpu.sm_clock_mhz = unsigned_of(library, device, "nvmlDeviceGetClockInfo", nvml::kClockSm);
  gpu.sm_clock_max_mhz = unsigned_of(library, device, "nvmlDeviceGetMaxClockInfo", nvml::kClockSm);
  gpu.memory_clock_mhz = unsigned_of(library, device, "nvmlDeviceGetClockInfo", nvml::kClockMemory);
  const auto watts = [&](const char* function) {  // NVML counts milliwatts
    return static_cast<double>(unsigned_of(library, device, function)) / 1000.0;
  };
  gpu.power_watts = watts("nvmlDeviceGetPowerUsage");
  gpu.power_limit_watts = watts("nvmlDeviceGetEnforcedPowerLimit");
  gpu.temperature_c = unsigned_of(library, device, "nvmlDeviceGetTemperature", nvml::kSensorGpuDie);
  read_modes(library, device, gpu);
  gpu.other_process_ids = other_processes(library, device);
  return gpu;
}

struct Links {
  int64_t active = 0;
  std::vector<std::string> remotes;  // address at the other end of each active link
};

Links read_links(const Library& library, Device device) {
  Links links;
  for (unsigned link = 0; link < nvml::kMaxLinks; ++link) {
    if (unsigned_of(library, device, "nvmlDeviceGetNvLinkState", link) != 1) continue;
    ++links.active;
    nvml::PciAddress remote = {};
    if (library.call<nvml::DeviceLinkPci>("nvmlDeviceGetNvLinkRemotePciInfo_v2", device, link,
                                          &remote) == nvml::kSuccess) {
      links.remotes.push_back(kernel_address(remote));
    }
  }
  return links;
}

// The words that nvidia-smi uses, which is what people search for.
std::string path_word(int code, unsigned level) {
  if (code != nvml::kSuccess) return "?";
  if (level == 0) return "PSB";   // one board
  if (level <= 10) return "PIX";  // one PCIe switch
  if (level <= 20) return "PXB";  // several PCIe switches
  if (level <= 30) return "PHB";  // a PCIe host bridge
  return level <= 40 ? "NODE" : "SYS";
}

std::string link_word(const Library& library, const std::vector<Device>& devices,
                      const std::vector<GpuFacts>& gpus, const std::vector<Links>& links,
                      size_t from, size_t to) {
  if (from == to) return "X";
  const std::vector<std::string>& remotes = links[from].remotes;
  int64_t count = std::count(remotes.begin(), remotes.end(), gpus[to].pci_bus_id);
  unsigned status = 1;
  if (count == 0 &&
      library.call<nvml::PairKindUnsigned>("nvmlDeviceGetP2PStatus", devices[from], devices[to],
                                           nvml::kPeerOverNvlink, &status) == nvml::kSuccess &&
      status == nvml::kPeerStatusOk) {
    count = std::min(links[from].active, links[to].active);  // through an NVLink switch
  }
  if (count > 0) return cat("NV", count);
  unsigned level = 0;
  const int code = library.call<nvml::PairUnsigned>("nvmlDeviceGetTopologyCommonAncestor",
                                                    devices[from], devices[to], &level);
  return path_word(code, level);
}

std::string cell(std::string word) {
  constexpr size_t kColumn = 6;  // "GPU15" and a blank
  word.resize(std::max(word.size() + 1, kColumn), ' ');
  return word;
}

std::string read_topology(const Library& library, const std::vector<Device>& devices,
                          const std::vector<GpuFacts>& gpus) {
  std::vector<Links> links;
  links.reserve(devices.size());
  for (const Device device : devices) links.push_back(read_links(library, device));
  std::string matrix = cell("");
  for (const GpuFacts& gpu : gpus) matrix += cell(cat("GPU", gpu.index));
  matrix += "\n";
  for (size_t from = 0; from < devices.size(); ++from) {
    matrix += cell(cat("GPU", gpus[from].index));
    for (size_t to = 0; to < devices.size(); ++to) {
      matrix += cell(link_word(library, devices, gpus, links, from, to));
    }
    matrix += "\n";
  }
  return matrix;
}

std::string cuda_version_text(int version) {  // 13000 is 13.0, 12040 is 12.4
  return cat(version / 1000, ".", version % 1000 / 10);
}

}  // namespace

NvmlFacts read_nvml(const std::string& name) {
  NvmlFacts facts;
  const Library library(name);
  facts.is_usable = library.is_usable();
  facts.problem = library.problem();
  if (!facts.is_usable) return facts;
  std::array<char, kTextRoom> text = {};
  if (library.call<nvml::SystemText>("nvmlSystemGetDriverVersion", text.data(),
                                     static_cast<unsigned>(text.size() - 1)) == nvml::kSuccess) {
    facts.driver_version = text.data();
  }
  int version = 0;
  if (library.call<nvml::SystemSigned>("nvmlSystemGetCudaDriverVersion_v2", &version) ==
      nvml::kSuccess) {
    facts.driver_cuda_version = cuda_version_text(version);
  }
  unsigned count = 0;
  library.call<nvml::SystemUnsigned>("nvmlDeviceGetCount_v2", &count);
  std::vector<Device> devices;
  for (unsigned index = 0; index < count; ++index) {
    Device device = nullptr;
    if (library.call<nvml::OpenDevice>("nvmlDeviceGetHandleByIndex_v2", index, &device) !=
        nvml::kSuccess) {
      facts.problem = cat("GPU ", index, " of ", count, " cannot be opened");
      continue;
    }
    devices.push_back(device);
    facts.gpus.push_back(read_gpu(library, device, index));
  }
  if (devices.size() > 1) facts.topology = read_topology(library, devices, facts.gpus);
  return facts;
}

}  // namespace assay::platform
