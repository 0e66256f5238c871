#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include "base/error.h"
#include "trainer/distributed/process_group.h"

namespace assay::distributed {
namespace {

using Tensors = std::vector<at::Tensor>;

int64_t bytes_of(const Tensors& tensors) {
  int64_t bytes = 0;
  for (const at::Tensor& tensor : tensors) bytes += static_cast<int64_t>(tensor.nbytes());
  return bytes;
}

// A future takes tensors only of the devices that it was made for; the CPU is not among them.
std::vector<c10::Device> devices_of(const Tensors& tensors) {
  if (tensors.empty() || tensors.front().is_cpu()) return {};
  return {tensors.front().device()};
}

// c10d's own FakeProcessGroup needs Python's headers, and its futures hold no tensors, which the
// reducer could not take.
class DoneWork : public c10d::Work {
 public:
  explicit DoneWork(Tensors tensors) : tensors_(std::move(tensors)) {}
  bool isCompleted() override { return true; }
  bool wait(std::chrono::milliseconds /*timeout*/) override { return true; }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override {
    auto future = c10::make_intrusive<c10::ivalue::Future>(
        c10::ListType::create(c10::TensorType::get()), devices_of(tensors_));
    future->markCompleted(c10::IValue(tensors_));
    return future;
  }

 private:
  Tensors tensors_;
};

class RoleBackend : public c10d::Backend {
 public:
  using WorkPointer = c10::intrusive_ptr<c10d::Work>;
  RoleBackend(int rank, int size) : Backend(rank, size) {}
  const std::string getBackendName() const override { return "role"; }
  WorkPointer allreduce(Tensors& tensors, const c10d::AllreduceOptions& /*options*/) override {
    ++tally_.all_reduces;
    tally_.all_reduce_bytes += bytes_of(tensors);
    return c10::make_intrusive<DoneWork>(tensors);
  }
  WorkPointer broadcast(Tensors& tensors, const c10d::BroadcastOptions& /*options*/) override {
    ++tally_.broadcasts;
    tally_.broadcast_bytes += bytes_of(tensors);
    return c10::make_intrusive<DoneWork>(tensors);
  }
  const CollectiveTally& tally() const { return tally_; }

 private:
  CollectiveTally tally_;
};

}  // namespace

c10::intrusive_ptr<c10d::ProcessGroup> make_role_group(int rank, int size) {
  auto backend = c10::make_intrusive<RoleBackend>(rank, size);
  auto group =
      c10::make_intrusive<c10d::ProcessGroup>(c10::make_intrusive<c10d::HashStore>(), rank, size);
  for (const c10::DeviceType type : {c10::DeviceType::CPU, c10::DeviceType::CUDA}) {
    group->setBackend(type, c10d::ProcessGroup::BackendType::CUSTOM, backend);
  }
  group->setDefaultBackend(c10d::ProcessGroup::BackendType::CUSTOM);
  return group;
}

CollectiveTally role_tally(c10d::ProcessGroup& group) {
  const auto backend = group.getBackend(c10::DeviceType::CPU);
  const auto* role = dynamic_cast<const RoleBackend*>(backend.get());
  if (role == nullptr) throw InternalError("role_tally() of a group that is no role group");
  return role->tally();
}

}  // namespace assay::distributed
