#include <chrono>

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include "trainer/distributed/process_group.h"

namespace assay::distributed {

bool has_nccl() { return true; }

c10::intrusive_ptr<c10d::ProcessGroup> make_nccl_group(const GroupRequest& request) {
  auto options = c10d::ProcessGroupNCCL::Options::create();
  options->timeout = std::chrono::milliseconds(static_cast<int64_t>(request.timeout_seconds * 1e3));
  const auto store = c10::make_intrusive<c10d::PrefixStore>("nccl", request.store);
  auto backend =
      c10::make_intrusive<c10d::ProcessGroupNCCL>(store, request.rank, request.size, options);
  auto group = c10::make_intrusive<c10d::ProcessGroup>(request.store, request.rank, request.size);
  group->setBackend(c10::DeviceType::CUDA, c10d::ProcessGroup::BackendType::NCCL, backend);
  group->setDefaultBackend(c10d::ProcessGroup::BackendType::NCCL);
  // Binding the device makes the communicator now, here, rather than in the first step.
  const c10::Device device(c10::DeviceType::CUDA,
                           static_cast<c10::DeviceIndex>(request.device_index));
  group->setBoundDeviceId(device);
  backend->setBoundDeviceId(device);
  backend->eagerConnectSingleDevice(device);
  return group;
}

std::string nccl_flight_record() {
  return c10d::dump_nccl_trace_json(/*includeCollectives=*/true, /*onlyActive=*/false);
}

}  // namespace assay::distributed
