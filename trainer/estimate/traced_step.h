// What tracing one training step of a configuration found out. No torch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/estimate/trace_recorder.h"

namespace assay::estimate {

// A parameter's gradient at the moment in the backward pass when it is complete.
struct ReadyGradient {
  std::string name;
  int64_t bytes = 0;
  int64_t elements = 0;
  size_t num_operations = 0;  // operations in StepTrace::work done by then
};

struct StepTrace {
  int64_t parameters = 0;
  int64_t parameter_tensors = 0;
  BytesByKind state{};                    // weights, gradients and optimizer before the first batch
  BytesByKind requested{};                // the same without the allocator's rounding
  int64_t load_bytes = 0;                 // allocated after loading
  MemoryPeak first_peak;                  // of the first step
  MemoryPeak steady_peak;                 // of a later step
  int64_t activation_bytes = 0;           // kept by the forward pass for the backward pass
  int64_t reserved_bytes = 0;             // segments that the allocator takes from the device
  std::vector<OperationWork> work;        // of one micro-step and the update
  std::vector<ReadyGradient> ready;       // in the order of the backward pass
  std::vector<ReadyGradient> registered;  // the same parameters in the model's order
  int64_t tokens = 0;                     // a micro-step; 0 for images
  int64_t samples = 0;                    // a micro-step
  int64_t batch_host_bytes = 0;           // one loaded micro-batch
  int64_t weight_element_bytes = 4;       // what weights are stored in
  int64_t kv_elements_per_token = 0;      // keys and values that generation keeps; 0: none
  bool is_language_model = false;
};

}  // namespace assay::estimate
