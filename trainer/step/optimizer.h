// Optimizers whose whole state is tensors under parameter names, so that a resume can prove it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "trainer/config/run_config.h"

namespace assay::distributed {
class World;
}

namespace assay::step {

struct NamedTensor {
  std::string name;
  at::Tensor tensor;
};

// Main thread only. Borrows the parameters; their gradients must be allocated. State tensors are
// allocated at construction (zeros), never lazily, so that their names and count do not depend on
// the steps done.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  // One update of every parameter from its gradient. `found_nonfinite`: one float on the device,
  // 0 or 1; with 1 nothing may change. No synchronisation with the device.
  virtual void step(double learning_rate, const at::Tensor& found_nonfinite) = 0;
  // "exp_avg/conv1.weight", ...: sorted as created; the tensors themselves, for saving and loading.
  virtual std::vector<NamedTensor> state() const = 0;
  // The state of all ranks together, on rank 0; others get what they have. Collective.
  virtual std::vector<NamedTensor> gather_state(distributed::World& world) const;
  // Gives every rank its part of rank 0's `full`, which gather_state returned. Collective.
  virtual void scatter_state(distributed::World& world, const std::vector<NamedTensor>& full);
};

// sgd: momentum as in PyTorch (Sutskever et al. 2013, in torch.optim.SGD's form), coupled decay.
// adam: Kingma & Ba 2015, alg. 1, coupled decay. adamw: Loshchilov & Hutter 2019, alg. 2. Decay
// acts on parameters of two or more dimensions only (no decay on biases and norms).
std::unique_ptr<Optimizer> make_optimizer(const config::OptimizerConfig& config,
                                          std::vector<NamedTensor> parameters);

// Allocates zeroed gradients, so that backward accumulates in place at fixed addresses.
void allocate_gradients(const std::vector<NamedTensor>& parameters);

}  // namespace assay::step
