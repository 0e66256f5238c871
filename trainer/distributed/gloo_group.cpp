#include <chrono>

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "trainer/distributed/process_group.h"

namespace assay::distributed {

c10::intrusive_ptr<c10d::ProcessGroup> make_gloo_group(const GroupRequest& request) {
  const auto timeout =
      std::chrono::milliseconds(static_cast<int64_t>(request.timeout_seconds * 1e3));
  auto options = c10d::ProcessGroupGloo::Options::create(timeout);
  options->devices.push_back(
      request.interface.empty()
          ? c10d::ProcessGroupGloo::createDeviceForHostname(request.address)
          : c10d::ProcessGroupGloo::createDeviceForInterface(request.interface));
  const auto store = c10::make_intrusive<c10d::PrefixStore>("gloo", request.store);
  auto backend = c10::make_intrusive<c10d::ProcessGroupGloo>(store, request.rank, request.size,
                                                             std::move(options));
  auto group = c10::make_intrusive<c10d::ProcessGroup>(request.store, request.rank, request.size);
  for (const c10::DeviceType type : {c10::DeviceType::CPU, c10::DeviceType::CUDA}) {
    group->setBackend(type, c10d::ProcessGroup::BackendType::GLOO, backend);
  }
  group->setDefaultBackend(c10d::ProcessGroup::BackendType::GLOO);
  return group;
}

}  // namespace assay::distributed
