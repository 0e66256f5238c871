#include "trainer/step/initial_weights.h"

#include <array>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include <torch/torch.h>

#include "base/error.h"
#include "base/text.h"
#include "checkpoints/published_names.h"

namespace assay::step {
namespace {

using checkpoints::TensorView;

// Types that weights come in; a counter is I64.
c10::ScalarType type_of(const TensorView& view, const std::string& path) {
  constexpr std::array<std::pair<std::string_view, c10::ScalarType>, 5> kTypes = {
      {{"F32", torch::kFloat32},
       {"F16", torch::kFloat16},
       {"BF16", torch::kBFloat16},
       {"F64", torch::kFloat64},
       {"I64", torch::kInt64}}};
  for (const auto& [name, type] : kTypes) {
    if (view.dtype == name) return type;
  }
  throw CheckpointError(cat(path, ": tensor ", quoted(view.name), " is of type ", view.dtype,
                            ", expected F32, F16, BF16, F64 or I64. Fix: give weights of one of ",
                            "these"));
}

[[noreturn]] void refuse(const models::Model& model, const std::string& path,
                         const std::string& problem) {
  throw CheckpointError(cat("model.init_from ", quoted(path), " does not fit model ", model.name,
                            ": ", problem,
                            ". Fix: give the weights of this model, or set model.num_classes and "
                            "the other sizes to the file's"));
}

void load_tensor(const models::Model& model, const std::string& path, const TensorView& view,
                 const at::Tensor& target) {
  const c10::ScalarType type = type_of(view, path);
  if (view.shape != target.sizes().vec() ||
      c10::isFloatingType(type) != target.is_floating_point()) {
    refuse(model, path,
           cat("tensor ", quoted(view.name), " is ", view.dtype, " ",
               c10::str(at::IntArrayRef(view.shape)), ", the model has ",
               c10::toString(target.scalar_type()), " ", c10::str(target.sizes())));
  }
  const at::Tensor stored = torch::empty(target.sizes(), type);
  if (view.byte_count > 0) std::memcpy(stored.mutable_data_ptr(), view.bytes, view.byte_count);
  target.copy_(stored);
}

}  // namespace

void load_initial_weights(const models::Model& model, const std::string& path) {
  const torch::NoGradGuard no_grad;
  const checkpoints::SafetensorsFile file(path);
  const std::vector<TensorView> views = checkpoints::with_own_names(file.tensors(), path);
  std::map<std::string_view, const TensorView*> unused;
  for (const TensorView& view : views) unused.emplace(view.name, &view);
  const auto load = [&](const auto& entries) {
    for (const auto& entry : entries) {
      const auto found = unused.find(entry.key());
      if (found == unused.end()) {
        refuse(model, path, cat("tensor ", quoted(entry.key()), " is missing in the file"));
      }
      load_tensor(model, path, *found->second, entry.value());
      unused.erase(found);
    }
  };
  load(model.module->named_parameters());
  load(model.module->named_buffers());
  if (unused.empty()) return;
  refuse(model, path, cat("its tensor ", quoted(unused.begin()->first), " is not the model's"));
}

}  // namespace assay::step
