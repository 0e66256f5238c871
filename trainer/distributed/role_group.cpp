#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include "trainer/distributed/process_group.h"

namespace assay::distributed {
namespace {

// c10d's own FakeProcessGroup needs Python's headers, and its futures hold no tensors, which the
// reducer could not take.
class DoneWork : public c10d::Work {
 public:
  explicit DoneWork(std::vector<at::Tensor> tensors) : tensors_(std::move(tensors)) {}
  bool isCompleted() override { return true; }
  bool wait(std::chrono::milliseconds /*timeout*/) override { return true; }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override {
    auto future =
        c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()));
    future->markCompleted(c10::IValue(tensors_));
    return future;
  }

 private:
  std::vector<at::Tensor> tensors_;
};

class RoleBackend : public c10d::Backend {
 public:
  using WorkPointer = c10::intrusive_ptr<c10d::Work>;
  using Tensors = std::vector<at::Tensor>;
  RoleBackend(int rank, int size) : Backend(rank, size) {}
  const std::string getBackendName() const override { return "role"; }
  WorkPointer allreduce(Tensors& tensors, const c10d::AllreduceOptions& /*options*/) override {
    return c10::make_intrusive<DoneWork>(tensors);
  }
  WorkPointer broadcast(Tensors& tensors, const c10d::BroadcastOptions& /*options*/) override {
    return c10::make_intrusive<DoneWork>(tensors);
  }
  WorkPointer send(Tensors& tensors, int /*to*/, int /*tag*/) override {
    return c10::make_intrusive<DoneWork>(tensors);
  }
  WorkPointer recv(Tensors& tensors, int /*from*/, int /*tag*/) override {
    return c10::make_intrusive<DoneWork>(tensors);
  }
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

}  // namespace assay::distributed
