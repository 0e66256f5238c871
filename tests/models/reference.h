// What the model tests share: the golden files, and the formulas for weights and inputs that the
// scripts beside the golden files compute alike.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <nlohmann/json_fwd.hpp>

#include "models/model.h"

namespace assay::models {

// tests/golden/<name>.json
nlohmann::json read_golden(const std::string& name);

// The numbers of a list of hexadecimal floating point texts, as float64.
at::Tensor golden_tensor(const nlohmann::json& texts, at::IntArrayRef shape);
double golden_number(const nlohmann::json& text);

// Doubles in [-0.5, 0.5) with 24 bits each, from splitmix64 (Steele et al. 2014).
at::Tensor uniform(uint64_t stream, at::IntArrayRef shape);

// Parameter number k gets scale * uniform(k), in order of registration; layer norm weights plus 1.
void fill_parameters(const Model& model, double scale);

// Parameter number k gets uniform(k) of variance 2 / fan_in where it has two or more dimensions,
// else a tenth of uniform(k), plus 1 for norm weights; float32 or float64, on the CPU.
void fill_by_fan_in(const Model& model);

// ||actual - expected|| / ||expected||
double relative_error(const at::Tensor& actual, const at::Tensor& expected);

// Compares names, norms and projections of all gradients; reports each parameter that is off by
// more than `bound` times the gradient's norm, or times a 1024th of the norm of all together.
void expect_gradients_match(const Model& model, const nlohmann::json& golden, double bound);

}  // namespace assay::models
