// A management library of a machine with three GPUs, to test the questions and the layouts against
// something that was written from the published interface, not from our declarations: structures
// are filled by byte offset. Not a driver: it answers with fixed numbers.
#include <cstdint>
#include <cstdio>
#include <cstring>

namespace {

constexpr int kNotSupported = 3;
constexpr int kInsufficientSize = 7;
constexpr unsigned kGpus = 3;
unsigned handles[kGpus] = {0, 1, 2};

unsigned index_of(const void* device) { return *static_cast<const unsigned*>(device); }

int put(char* out, unsigned length, const char* text) {
  if (std::strlen(text) + 1 > length) return kInsufficientSize;
  std::strcpy(out, text);
  return 0;
}

int give(unsigned* out, unsigned value) {
  *out = value;
  return 0;
}

// Offset 36: after the short id (16) and five numbers (20).
void put_address(unsigned gpu, unsigned char* pci) {
  std::snprintf(reinterpret_cast<char*>(pci) + 36, 32, "00000000:%02X:00.0", 0xA0 + gpu);
}

void put_u64(unsigned char* at, uint64_t value) { std::memcpy(at, &value, sizeof(value)); }

}  // namespace

extern "C" {

int nvmlInit_v2() { return 0; }
int nvmlShutdown() { return 0; }
int nvmlSystemGetDriverVersion(char* out, unsigned length) { return put(out, length, "580.95.05"); }
int nvmlSystemGetCudaDriverVersion_v2(int* version) {
  *version = 13010;
  return 0;
}
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = kGpus;
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  *device = &handles[index];
  return 0;
}
int nvmlDeviceGetName(void*, char* out, unsigned length) { return put(out, length, "SIM H200"); }
int nvmlDeviceGetUUID(void*, char* out, unsigned length) { return put(out, length, "GPU-1234"); }
int nvmlDeviceGetPciInfo_v3(void* device, unsigned char* pci) {
  put_address(index_of(device), pci);
  return 0;
}
int nvmlDeviceGetMemoryInfo(void*, unsigned char* memory) {
  put_u64(memory, 150000000000);      // total
  put_u64(memory + 8, 149000000000);  // free
  put_u64(memory + 16, 1000000000);   // used
  return 0;
}
int nvmlDeviceGetCudaComputeCapability(void*, int* major, int* minor) {
  *major = 9;
  *minor = 0;
  return 0;
}
int nvmlDeviceGetCurrPcieLinkGeneration(void*, unsigned* value) { return give(value, 4); }
int nvmlDeviceGetMaxPcieLinkGeneration(void*, unsigned* value) { return give(value, 5); }
int nvmlDeviceGetCurrPcieLinkWidth(void*, unsigned* value) { return give(value, 8); }
int nvmlDeviceGetMaxPcieLinkWidth(void*, unsigned* value) { return give(value, 16); }
int nvmlDeviceGetClockInfo(void*, unsigned kind, unsigned* value) {
  *value = kind == 1 ? 1980 : 3201;
  return 0;
}
int nvmlDeviceGetMaxClockInfo(void*, unsigned, unsigned* value) { return give(value, 1999); }
int nvmlDeviceGetPowerUsage(void*, unsigned* value) { return give(value, 76500); }
int nvmlDeviceGetEnforcedPowerLimit(void*, unsigned* value) { return give(value, 700000); }
int nvmlDeviceGetTemperature(void*, unsigned, unsigned* value) { return give(value, 31); }
int nvmlDeviceGetEccMode(void*, unsigned* now, unsigned* pending) {
  *now = 1;
  *pending = 1;
  return 0;
}
int nvmlDeviceGetMigMode(void*, unsigned*, unsigned*) { return kNotSupported; }
int nvmlDeviceGetPersistenceMode(void*, unsigned* mode) { return give(mode, 0); }
int nvmlDeviceGetTotalEccErrors(void*, unsigned kind, unsigned counter, unsigned long long* count) {
  *count = kind == 1 && counter == 0 ? 7 : 0;
  return 0;
}

// 40 processes: more than the first question has room for. 24 bytes each, the id comes first.
int nvmlDeviceGetComputeRunningProcesses_v3(void* device, unsigned* count, unsigned char* list) {
  const unsigned have = index_of(device) == 0 ? 40 : 0;
  const unsigned room = *count;
  *count = have;
  if (room < have) return kInsufficientSize;
  for (unsigned i = 0; i < have; ++i) {
    const uint32_t id = 1000 + i;
    std::memcpy(list + size_t{i} * 24, &id, sizeof(id));
  }
  return 0;
}

// GPU 0 and 1: two direct links each way. GPU 2: on the other socket, no link.
int nvmlDeviceGetNvLinkState(void* device, unsigned link, unsigned* state) {
  *state = index_of(device) < 2 && link < 2 ? 1 : 0;
  return 0;
}
int nvmlDeviceGetNvLinkRemotePciInfo_v2(void* device, unsigned, unsigned char* pci) {
  put_address(1 - index_of(device), pci);
  return 0;
}
int nvmlDeviceGetP2PStatus(void*, void*, unsigned, unsigned* status) { return give(status, 4); }
int nvmlDeviceGetTopologyCommonAncestor(void*, void*, unsigned* level) { return give(level, 50); }

}  // extern "C"
