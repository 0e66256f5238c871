#include "trainer/step/sharded_optimizer.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <torch/torch.h>

#include "base/error.h"
#include "base/text.h"

namespace assay::step {
namespace {

struct TensorShape {
  std::string name;
  c10::ScalarType type = c10::ScalarType::Float;
  std::vector<int64_t> sizes;
};

std::string shapes_text(const std::vector<NamedTensor>& tensors) {
  std::vector<std::string> lines;
  for (const NamedTensor& entry : tensors) {
    std::string line = cat(entry.name, "\t", static_cast<int>(entry.tensor.scalar_type()));
    for (const int64_t size : entry.tensor.sizes()) line += cat("\t", size);
    lines.push_back(std::move(line));
  }
  return join(lines, "\n");
}

std::vector<TensorShape> shapes_from(const std::string& text) {
  std::vector<TensorShape> shapes;
  for (const std::string& line : split(text, '\n')) {
    if (line.empty()) continue;
    const std::vector<std::string> parts = split(line, '\t');
    TensorShape shape{
        parts.at(0), static_cast<c10::ScalarType>(parse_int64(parts.at(1)).value_or(0)), {}};
    for (size_t i = 2; i < parts.size(); ++i) shape.sizes.push_back(parse_int64(parts[i]).value());
    shapes.push_back(std::move(shape));
  }
  return shapes;
}

class ShardedOptimizer final : public Optimizer {
 public:
  ShardedOptimizer(const config::OptimizerConfig& config, std::vector<NamedTensor> parameters,
                   distributed::World& world)
      : world_(world) {
    std::vector<int64_t> sizes;
    for (const NamedTensor& entry : parameters) sizes.push_back(entry.tensor.numel());
    const std::vector<int64_t> owners = assign_owners(sizes, world.size());
    shares_.resize(static_cast<size_t>(world.size()));
    std::vector<NamedTensor> own;
    for (size_t i = 0; i < parameters.size(); ++i) {
      shares_[static_cast<size_t>(owners[i])].push_back(parameters[i].tensor);
      if (owners[i] == world.rank()) own.push_back(parameters[i]);
    }
    // A rank may be left without any when there are more ranks than parameters.
    if (!own.empty()) optimizer_ = make_optimizer(config, std::move(own));
    for (const std::string& text : world.gather_texts("optimizer shares", shapes_text(state()))) {
      shapes_.push_back(shapes_from(text));
    }
  }

  void step(double learning_rate, const at::Tensor& found_nonfinite) override {
    if (optimizer_) optimizer_->step(learning_rate, found_nonfinite);
    for (size_t owner = 0; owner < shares_.size(); ++owner) {
      world_.broadcast(shares_[owner], static_cast<int64_t>(owner));
    }
  }

  std::vector<NamedTensor> state() const override {
    return optimizer_ ? optimizer_->state() : std::vector<NamedTensor>{};
  }

  std::vector<NamedTensor> gather_state(distributed::World& world) const override {
    std::vector<NamedTensor> own = state();
    if (!world.is_root()) {
      for (const NamedTensor& entry : own) world.send(entry.tensor, 0);
      return own;
    }
    for (size_t owner = 1; owner < shapes_.size(); ++owner) {
      for (const TensorShape& shape : shapes_[owner]) {
        const at::Tensor tensor =
            torch::empty(shape.sizes, torch::TensorOptions().dtype(shape.type).device(device()));
        world.receive(tensor, static_cast<int64_t>(owner));
        if (has(own, shape.name)) continue;  // the step counter, which every rank has
        own.push_back({shape.name, tensor});
      }
    }
    return own;
  }

  void scatter_state(distributed::World& world, const std::vector<NamedTensor>& full) override {
    if (!world.is_root()) {
      for (const NamedTensor& entry : state()) world.receive(entry.tensor, 0);
      return;
    }
    for (size_t owner = 1; owner < shapes_.size(); ++owner) {
      for (const TensorShape& shape : shapes_[owner]) {
        world.send(find(full, shape.name), static_cast<int64_t>(owner));
      }
    }
  }

 private:
  c10::Device device() const {
    for (const auto& share : shares_) {
      if (!share.empty()) return share.front().device();
    }
    throw InternalError("a sharded optimizer without parameters");
  }
  static bool has(const std::vector<NamedTensor>& list, const std::string& name) {
    return std::any_of(list.begin(), list.end(),
                       [&](const NamedTensor& entry) { return entry.name == name; });
  }
  static const at::Tensor& find(const std::vector<NamedTensor>& list, const std::string& name) {
    for (const NamedTensor& entry : list) {
      if (entry.name == name) return entry.tensor;
    }
    throw InternalError(cat("the optimizer's state lacks ", quoted(name)));
  }

  distributed::World& world_;
  std::vector<std::vector<at::Tensor>> shares_;   // parameters by owner
  std::vector<std::vector<TensorShape>> shapes_;  // state by owner
  std::unique_ptr<Optimizer> optimizer_;          // of this rank's share; null: it has none
};

}  // namespace

std::vector<int64_t> assign_owners(const std::vector<int64_t>& sizes, int64_t world_size) {
  std::vector<size_t> order(sizes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return sizes[a] > sizes[b]; });
  std::vector<int64_t> loads(static_cast<size_t>(world_size), 0);
  std::vector<int64_t> owners(sizes.size(), 0);
  for (const size_t i : order) {
    const auto least = std::min_element(loads.begin(), loads.end());
    *least += sizes[i];
    owners[i] = least - loads.begin();
  }
  return owners;
}

std::unique_ptr<Optimizer> make_sharded_optimizer(const config::OptimizerConfig& config,
                                                  std::vector<NamedTensor> parameters,
                                                  distributed::World& world) {
  return std::make_unique<ShardedOptimizer>(config, std::move(parameters), world);
}

}  // namespace assay::step
