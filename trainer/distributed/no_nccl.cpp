// Stands in for nccl_group.cpp in builds without CUDA.
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "base/error.h"
#include "trainer/distributed/process_group.h"

namespace assay::distributed {

bool has_nccl() { return false; }

c10::intrusive_ptr<c10d::ProcessGroup> make_nccl_group(const GroupRequest&) {
  throw CouldNotRunError(
      "this build has no NCCL (it was made without CUDA). Fix: --ddp_backend gloo, or build with "
      "CUDA");
}

std::string nccl_flight_record() { return ""; }

}  // namespace assay::distributed
