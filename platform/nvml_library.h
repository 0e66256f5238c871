// Our own declarations of the part of NVML's C interface that is used here, and the opened library.
// Layouts and numbers follow the published ABI; a driver keeps them for good, because a changed
// structure gets a function with a new suffix (_v2, _v3).
#pragma once

#include <cstdint>
#include <string>

namespace assay::platform::nvml {

struct OpaqueDevice;
using Device = OpaqueDevice*;

// Every call returns one of these as int.
constexpr int kSuccess = 0;
constexpr int kInsufficientSize = 7;
constexpr int kFunctionNotFound = 13;

constexpr unsigned kClockSm = 1;
constexpr unsigned kClockMemory = 2;
constexpr unsigned kSensorGpuDie = 0;
constexpr unsigned kErrorsUncorrected = 1;
constexpr unsigned kCountSinceDriverLoad = 0;
constexpr unsigned kPeerOverNvlink = 2;
constexpr unsigned kPeerStatusOk = 0;
constexpr unsigned kMaxLinks = 18;

// For _v3 of nvmlDeviceGetPciInfo and _v2 of nvmlDeviceGetNvLinkRemotePciInfo.
struct PciAddress {
  char short_id[16];
  unsigned domain;
  unsigned bus;
  unsigned device;
  unsigned device_and_vendor;
  unsigned subsystem;
  char id[32];  // "00000000:65:00.0"
};
// 16 characters, five 4-byte numbers, 32 characters: 16 + 20 + 32; all offsets are
// multiples of 4, so there is no padding.
static_assert(sizeof(PciAddress) == 68 && alignof(PciAddress) == 4);

struct MemoryUse {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};
static_assert(sizeof(MemoryUse) == 24 && alignof(MemoryUse) == 8);

// For _v2 and _v3 of nvmlDeviceGetComputeRunningProcesses.
struct Process {
  unsigned pid;
  unsigned long long used_bytes;
  unsigned gpu_instance;
  unsigned compute_instance;
};
// pid, 4 bytes of padding before the 8-byte number, then two 4-byte numbers: 4 + 4 + 8 + 8.
static_assert(sizeof(Process) == 24 && alignof(Process) == 8);

using Plain = int();
using ErrorText = const char*(int);
using SystemText = int(char*, unsigned);
using SystemSigned = int(int*);
using SystemUnsigned = int(unsigned*);
using OpenDevice = int(unsigned, Device*);
using DeviceText = int(Device, char*, unsigned);
using DeviceUnsigned = int(Device, unsigned*);
using DeviceTwoUnsigned = int(Device, unsigned*, unsigned*);
using DeviceTwoSigned = int(Device, int*, int*);
using DeviceKindUnsigned = int(Device, unsigned, unsigned*);  // also: of one link
using DeviceMemory = int(Device, MemoryUse*);
using DevicePci = int(Device, PciAddress*);
using DeviceLinkPci = int(Device, unsigned, PciAddress*);
using DeviceErrors = int(Device, unsigned, unsigned, unsigned long long*);
using DeviceProcesses = int(Device, unsigned*, Process*);
using PairUnsigned = int(Device, Device, unsigned*);
using PairKindUnsigned = int(Device, Device, unsigned, unsigned*);

// The opened and initialised library; shut down and closed on destruction. Main thread only.
class Library {
 public:
  // Never throws; problem() says what went wrong.
  explicit Library(const std::string& name);
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  bool is_usable() const { return is_initialized_; }
  const std::string& problem() const { return problem_; }

  // Calls the function of that name; kFunctionNotFound if this library has none.
  template <class Signature, class... Arguments>
  int call(const char* function, Arguments... arguments) const {
    void* const address = find(function);
    if (!address) return kFunctionNotFound;
    return reinterpret_cast<Signature*>(address)(arguments...);
  }

 private:
  void* find(const char* function) const;
  std::string error_text(int code) const;

  void* handle_ = nullptr;
  bool is_initialized_ = false;
  std::string problem_;
};

}  // namespace assay::platform::nvml
