#include "tests/models/reference.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <torch/nn/module.h>

#include "base/files.h"
#include "base/text.h"

namespace assay::models {
namespace {

double uniform_value(uint64_t stream, uint64_t index) {
  uint64_t z = ((stream << 32) + index + 1) * 0x9E3779B97F4A7C15ULL;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  z ^= z >> 31;
  return static_cast<double>(z >> 40) / 16777216.0 - 0.5;
}

// Element by element, so that a tensor of a hundred million needs no copy.
template <class Formula>
void write_elements(const at::Tensor& tensor, const Formula& value_at) {
  const auto count = static_cast<uint64_t>(tensor.numel());
  if (tensor.scalar_type() == at::kDouble) {
    double* const data = tensor.mutable_data_ptr<double>();
    for (uint64_t i = 0; i < count; ++i) data[i] = value_at(i);
  } else {
    float* const data = tensor.mutable_data_ptr<float>();
    for (uint64_t i = 0; i < count; ++i) data[i] = static_cast<float>(value_at(i));
  }
}

struct Projection {
  double value = 0;       // <tensor, uniform(stream)>
  double probe_norm = 0;  // ||uniform(stream)||
};

Projection project(const at::Tensor& tensor, uint64_t stream) {
  const at::Tensor values = tensor.to(at::kDouble).contiguous();
  const double* const data = values.const_data_ptr<double>();
  const auto count = static_cast<uint64_t>(values.numel());
  Projection projection;
  for (uint64_t i = 0; i < count; ++i) {
    const double probe = uniform_value(stream, i);
    projection.value += data[i] * probe;
    projection.probe_norm += probe * probe;
  }
  projection.probe_norm = std::sqrt(projection.probe_norm);
  return projection;
}

// Of the whole gradient's norm. A bias before another batch norm has no influence: its gradient
// sums to nothing but rounding, which no bound relative to itself can hold.
constexpr double kSmallestShare = 1.0 / 1024;

double whole_norm(const nlohmann::json& gradients) {
  double sum = 0;
  for (const nlohmann::json& record : gradients) sum += std::pow(golden_number(record["norm"]), 2);
  return std::sqrt(sum);
}

bool is_norm_weight(const std::string& name) {
  for (const char* end : {"ln_1.weight", "ln_2.weight", "ln_f.weight"}) {
    if (name.ends_with(end)) return true;
  }
  return false;
}

}  // namespace

nlohmann::json read_golden(const std::string& name) {
  return nlohmann::json::parse(read_file(cat(ASSAY_GOLDEN_DIR, "/", name, ".json")));
}

double golden_number(const nlohmann::json& text) {
  return parse_hex_float(text.get<std::string>()).value();
}

at::Tensor golden_tensor(const nlohmann::json& texts, at::IntArrayRef shape) {
  std::vector<double> values;
  for (const nlohmann::json& text : texts) values.push_back(golden_number(text));
  return at::tensor(values, at::kDouble).reshape(shape);
}

at::Tensor uniform(uint64_t stream, at::IntArrayRef shape) {
  at::Tensor values = at::empty(shape, at::kDouble);
  double* const data = values.data_ptr<double>();
  for (int64_t i = 0; i < values.numel(); ++i) {
    data[i] = uniform_value(stream, static_cast<uint64_t>(i));
  }
  return values;
}

void fill_parameters(const Model& model, double scale) {
  const at::NoGradGuard no_grad;
  uint64_t stream = 0;
  for (const auto& parameter : model.module->named_parameters()) {
    at::Tensor values = scale * uniform(stream, parameter.value().sizes());
    if (is_norm_weight(parameter.key())) values += 1.0;
    parameter.value().copy_(values);
    ++stream;
  }
}

void fill_by_fan_in(const Model& model) {
  uint64_t stream = 0;
  for (const auto& parameter : model.module->named_parameters()) {
    const at::Tensor& value = parameter.value();
    const bool is_vector = value.dim() == 1;
    const double fan_in = static_cast<double>(c10::multiply_integers(value.sizes().slice(1)));
    const double scale = is_vector ? 0.1 : std::sqrt(24.0 / fan_in);
    const double shift = is_vector && parameter.key().ends_with("weight") ? 1.0 : 0.0;
    write_elements(value, [&](uint64_t i) { return scale * uniform_value(stream, i) + shift; });
    ++stream;
  }
}

double relative_error(const at::Tensor& actual, const at::Tensor& expected) {
  const at::Tensor difference = actual.detach().to(at::kDouble) - expected.to(at::kDouble);
  return (difference.norm() / expected.to(at::kDouble).norm()).item<double>();
}

void expect_gradients_match(const Model& model, const nlohmann::json& golden, double bound) {
  const auto parameters = model.module->named_parameters();
  ASSERT_EQ(parameters.size(), golden.size());
  const double smallest = whole_norm(golden) * kSmallestShare;
  uint64_t stream = 0;
  for (const auto& parameter : parameters) {
    const nlohmann::json& record = golden[stream];
    ASSERT_EQ(parameter.key(), record["name"].get<std::string>());
    const at::Tensor gradient = parameter.value().grad().to(at::kDouble);
    const double norm = golden_number(record["norm"]);
    const double allowed = bound * std::max(norm, smallest);
    EXPECT_NEAR(gradient.norm().item<double>(), norm, allowed) << parameter.key();
    for (uint64_t k = 0; k < 2; ++k) {
      const Projection projection = project(gradient, 1000 * (k + 1) + stream);
      // |<error, probe>| <= ||error|| ||probe||
      EXPECT_NEAR(projection.value, golden_number(record["projections"][k]),
                  allowed * projection.probe_norm)
          << parameter.key() << ", projection " << k;
    }
    ++stream;
  }
}

}  // namespace assay::models
