// What the shape device does with every operator that has no rule of its own: the meta kernel says
// the shapes, the work is inputs and outputs moved once, and products count their multiplications.
#include <algorithm>
#include <string>
#include <unordered_map>

#include <ATen/EmptyTensor.h>
#include <torch/library.h>
#include <torch/torch.h>

#include "base/error.h"
#include "base/text.h"
#include "trainer/estimate/shape_kernels.h"

namespace assay::estimate::shape_kernels {
namespace {

using Stack = torch::jit::Stack;

bool is_ours(const c10::IValue& value) {
  return value.isTensor() && value.toTensor().defined() &&
         value.toTensor().device().type() == c10::DeviceType::PrivateUse1;
}

at::Tensor meta_of(const at::Tensor& tensor) {
  return at::detail::empty_strided_meta(tensor.sizes(), tensor.strides(), tensor.scalar_type());
}

c10::IValue meta_of_value(const c10::IValue& value) {
  if (is_ours(value)) return meta_of(value.toTensor());
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& tensor : value.toTensorVector()) {
      list.push_back(tensor.defined() && is_ours(tensor) ? meta_of(tensor) : tensor);
    }
    return list;
  }
  if (value.isList() && value.toListRef().size() > 0) {  // Tensor?[]
    const auto elements = value.toListRef();
    if (std::none_of(elements.begin(), elements.end(), is_ours)) return value;
    c10::List<std::optional<at::Tensor>> list;
    for (const c10::IValue& element : elements) {
      list.push_back(element.isNone() ? std::optional<at::Tensor>()
                                      : meta_of_value(element).toTensor());
    }
    return list;
  }
  if (value.isDevice() && value.toDevice().type() == c10::DeviceType::PrivateUse1) {
    return c10::Device(c10::DeviceType::Meta);
  }
  return value;
}

void append_tensors(const c10::IValue& value, std::vector<at::Tensor>& tensors) {
  if (value.isTensor() && value.toTensor().defined()) tensors.push_back(value.toTensor());
  if (!value.isList()) return;
  for (const c10::IValue& element : value.toListRef()) {
    if (element.isTensor() && element.toTensor().defined()) tensors.push_back(element.toTensor());
  }
}

// Multiplications and additions of a matrix product, from its operands' shapes; 0 for the rest.
double product_flops(const std::string& name, const std::vector<at::Tensor>& tensors) {
  static const std::unordered_map<std::string, size_t> first_operand = {
      {"aten::mm", 0},
      {"aten::bmm", 0},
      {"aten::addmm", 1},
      {"aten::baddbmm", 1},
      {"aten::addbmm", 1},
      {"aten::mv", 0},
      {"aten::_addmm_activation", 1}};
  const auto found = first_operand.find(name);
  if (found == first_operand.end() || tensors.size() < found->second + 2) return 0.0;
  const at::Tensor& left = tensors[found->second];
  const at::Tensor& right = tensors[found->second + 1];
  const int64_t columns = right.dim() > 1 ? right.size(-1) : 1;
  return 2.0 * static_cast<double>(left.numel()) * static_cast<double>(columns);
}

// Operators without a meta kernel in C++ whose result has the shape of their first tensor. Without
// an `out` argument it has its type too.
bool keeps_shape(const std::string& name) {
  static const std::vector<std::string> names = {
      "aten::abs",         "aten::relu",        "aten::hardtanh",
      "aten::logical_not", "aten::logical_and", "aten::hardtanh_backward",
      "aten::logical_or",  "aten::hardswish",   "aten::hardswish_backward"};
  return std::find(names.begin(), names.end(), name) != names.end();
}

struct Call {
  const c10::OperatorHandle& op;
  const c10::FunctionSchema& schema;
  std::vector<c10::IValue> arguments;
};

// The argument that a return value stands for, e.g. `out`; -1: a new value.
int64_t aliased_argument(const Call& call, const c10::Argument& result) {
  if (result.alias_info() == nullptr) return -1;
  const auto& arguments = call.schema.arguments();
  for (size_t i = 0; i < arguments.size(); ++i) {
    const c10::AliasInfo* info = arguments[i].alias_info();
    if (info != nullptr && info->isWrite() &&
        info->beforeSets() == result.alias_info()->beforeSets())
      return static_cast<int64_t>(i);
  }
  return -1;
}

c10::IValue ours_of(const c10::IValue& value) {
  if (value.isTensor()) {
    const at::Tensor& tensor = value.toTensor();
    if (!tensor.defined() || !tensor.is_meta()) return value;
    return empty_like_shape(tensor.sizes(), tensor.strides(), tensor.scalar_type());
  }
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& tensor : value.toTensorVector())
      list.push_back(ours_of(tensor).toTensor());
    return list;
  }
  return value;
}

// Runs the meta kernel and turns its results into ours.
std::vector<c10::IValue> run_meta(const Call& call) {
  Stack stack;
  for (const c10::IValue& argument : call.arguments) stack.push_back(meta_of_value(argument));
  const Stack before = stack;
  call.op.callBoxedForDispatchKey(c10::DispatchKey::Meta, stack);
  for (size_t i = 0; i < before.size(); ++i) {  // an `out` may have been resized
    if (!is_ours(call.arguments[i])) continue;
    const at::Tensor& ours = call.arguments[i].toTensor();
    const at::Tensor& meta = before[i].toTensor();
    if (ours.sizes() != meta.sizes()) ours.resize_(meta.sizes());
  }
  std::vector<c10::IValue> results;
  const auto& returns = call.schema.returns();
  for (size_t i = 0; i < returns.size(); ++i) {
    const int64_t argument = aliased_argument(call, returns[i]);
    results.push_back(argument >= 0 ? call.arguments[static_cast<size_t>(argument)]
                                    : ours_of(stack[i]));
  }
  return results;
}

bool is_in_place(const c10::FunctionSchema& schema) {
  return schema.name().ends_with('_') && !schema.name().ends_with("__");
}

std::vector<c10::IValue> results_of(const Call& call) {
  const std::string& name = call.schema.name();
  if (is_in_place(call.schema)) {  // shapes stay
    std::vector<c10::IValue> results;
    for (const c10::Argument& result : call.schema.returns()) {
      results.push_back(call.arguments[static_cast<size_t>(aliased_argument(call, result))]);
    }
    return results;
  }
  if (keeps_shape(name)) {
    const at::Tensor& like = call.arguments[0].toTensor();
    const int64_t out = aliased_argument(call, call.schema.returns()[0]);
    if (out < 0) return {empty_like_shape(like.sizes(), like.strides(), like.scalar_type())};
    const c10::IValue& result = call.arguments[static_cast<size_t>(out)];
    if (result.toTensor().sizes() != like.sizes()) result.toTensor().resize_(like.sizes());
    return {result};
  }
  if (!call.op.hasComputedKernelForDispatchKey(c10::DispatchKey::Meta)) {
    throw InternalError(cat("estimate has no shape rule for the operator ",
                            toString(call.op.operator_name()),
                            ", which the training step uses. Fix: add one to "
                            "trainer/estimate/shape_layers.cpp"));
  }
  return run_meta(call);
}

void run_operator(const c10::OperatorHandle& op, Stack* stack) {
  const c10::FunctionSchema& schema = op.schema();
  const size_t count = schema.arguments().size();
  Call call{op, schema, torch::jit::last(*stack, count).vec()};
  torch::jit::drop(*stack, count);
  const std::vector<c10::IValue> results = results_of(call);
  std::vector<at::Tensor> tensors;
  for (const c10::IValue& argument : call.arguments) append_tensors(argument, tensors);
  const double flops = product_flops(schema.name(), tensors);
  if (flops > 0.0) use_matrix_library();
  for (size_t i = 0; i < results.size(); ++i) {
    if (aliased_argument(call, schema.returns()[i]) < 0) append_tensors(results[i], tensors);
  }
  add_work(schema.name().substr(schema.name().find("::") + 2), flops, tensors);
  for (const c10::IValue& result : results) stack->push_back(result);
}

}  // namespace

void register_fallback(torch::Library& all_operators) {
  all_operators.fallback(torch::CppFunction::makeFromBoxedFunction<&run_operator>());
}

}  // namespace assay::estimate::shape_kernels
