// Process groups by backend. Each lives in a translation unit of its own, so that a build without
// NCCL lacks one file and nothing else.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <c10/util/intrusive_ptr.h>

namespace c10d {
class ProcessGroup;
class Store;
}  // namespace c10d

namespace assay::distributed {

struct GroupRequest {
  c10::intrusive_ptr<c10d::Store> store;
  int rank = 0;
  int size = 1;
  double timeout_seconds = 600;  // of one collective
  std::string address;           // Gloo: this host's address towards the other ranks
  std::string interface;         // Gloo: the interface to use instead, if not empty
  int device_index = 0;          // NCCL: this rank's GPU
};

// Blocks until every rank is connected or the time-out has passed; throws c10::Error then.
c10::intrusive_ptr<c10d::ProcessGroup> make_gloo_group(const GroupRequest& request);

// NCCL. `has_nccl` says whether this build has it; without it the call throws CouldNotRunError.
bool has_nccl();
c10::intrusive_ptr<c10d::ProcessGroup> make_nccl_group(const GroupRequest& request);

// One process in the role of `rank` of `size`: every collective returns at once and leaves its
// tensors as they are, as c10d's FakeProcessGroup does.
c10::intrusive_ptr<c10d::ProcessGroup> make_role_group(int rank, int size);

// What was given to a role group's collectives since it was made. Read it between steps: the
// backward pass counts on a thread of its own.
struct CollectiveTally {
  int64_t all_reduces = 0;
  int64_t all_reduce_bytes = 0;
  int64_t broadcasts = 0;
  int64_t broadcast_bytes = 0;
};
CollectiveTally role_tally(c10d::ProcessGroup& group);

// What NCCL's flight recorder holds (JSON); empty without NCCL.
std::string nccl_flight_record();

}  // namespace assay::distributed
