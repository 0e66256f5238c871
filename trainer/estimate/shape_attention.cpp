// The fused attention kernels on the shape device, and which of them a run would use.
#include <array>
#include <tuple>

#include <torch/library.h>
#include <torch/torch.h>

#include "trainer/estimate/shape_kernels.h"

namespace assay::estimate::shape_kernels {
namespace {

// B batch, H heads, T queries, S keys, d width of a head
using Optional = const std::optional<at::Tensor>&;

// Two products: scores [T, S] and their sum over values; a causal mask halves both.
double attention_flops(const at::Tensor& query, const at::Tensor& key, bool is_causal) {
  const double products =
      2.0 * 2.0 * static_cast<double>(query.numel()) * static_cast<double>(key.size(-2));
  return is_causal ? products / 2.0 : products;
}

// Flash-type kernels write the output as [B, T, H, d] and give it back turned.
at::Tensor turned_like(const at::Tensor& query) {
  return at::empty({query.size(0), query.size(2), query.size(1), query.size(3)}, query.options())
      .transpose(1, 2);
}

at::Tensor seed_value(const at::Tensor& query) {
  return at::empty({}, query.options().dtype(at::kLong));
}

at::Tensor row_sums(const at::Tensor& query, int64_t rows) {
  return at::empty({query.size(0), query.size(1), rows}, query.options().dtype(at::kFloat));
}

using FlashResult = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, c10::SymInt,
                               c10::SymInt, at::Tensor, at::Tensor, at::Tensor>;

FlashResult flash_forward(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                          bool is_causal) {
  const at::Tensor output = turned_like(query);            // [B, H, T, d]
  const at::Tensor sums = row_sums(query, query.size(2));  // [B, H, T]
  add_work("attention", attention_flops(query, key, is_causal), {query, key, value, output});
  return {output,
          sums,
          at::Tensor(),
          at::Tensor(),
          query.size(2),
          key.size(2),
          seed_value(query),
          seed_value(query),
          at::empty({0}, query.options())};
}

FlashResult flash(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, double,
                  bool is_causal, bool, std::optional<double>) {
  return flash_forward(query, key, value, is_causal);
}

FlashResult cudnn(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, Optional,
                  bool, double, bool is_causal, bool, std::optional<double>) {
  return flash_forward(query, key, value, is_causal);
}

using Gradients = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

// Five products against the forward's two; query gradients are summed in float32, with one value a
// row beside them (Dao 2023, alg. 2).
Gradients flash_backward(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                         bool is_causal) {
  const Gradients gradients = {turned_like(query), turned_like(key), turned_like(value)};
  recorder().use_scratch(4 * (query.numel() + query.numel() / query.size(3)));
  add_work("attention_backward", 2.5 * attention_flops(query, key, is_causal),
           {query, key, value, query, query, std::get<0>(gradients), std::get<1>(gradients),
            std::get<2>(gradients)});
  return gradients;
}

Gradients flash_gradients(const at::Tensor&, const at::Tensor& query, const at::Tensor& key,
                          const at::Tensor& value, const at::Tensor&, const at::Tensor&,
                          const at::Tensor&, const at::Tensor&, int64_t, int64_t, double,
                          bool is_causal, const at::Tensor&, const at::Tensor&,
                          std::optional<double>) {
  return flash_backward(query, key, value, is_causal);
}

Gradients cudnn_gradients(const at::Tensor&, const at::Tensor& query, const at::Tensor& key,
                          const at::Tensor& value, const at::Tensor&, const at::Tensor&,
                          const at::Tensor&, const at::Tensor&, const at::Tensor&,
                          const at::Tensor&, const at::Tensor&, int64_t, int64_t, double,
                          bool is_causal, std::optional<double>) {
  return flash_backward(query, key, value, is_causal);
}

// The memory-efficient kernel keeps its row sums padded to 32 rows.
std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> efficient(
    const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, Optional,
    bool has_sums, double, bool is_causal, std::optional<double>) {
  const at::Tensor output = turned_like(query);
  const int64_t rows = has_sums ? (query.size(2) + 31) / 32 * 32 : 0;
  add_work("attention", attention_flops(query, key, is_causal), {query, key, value, output});
  return {output, row_sums(query, rows), seed_value(query), seed_value(query)};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> efficient_gradients(
    const at::Tensor&, const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
    const at::Tensor&, const at::Tensor&, const at::Tensor&, const at::Tensor&, const at::Tensor&,
    double, std::array<bool, 4>, bool is_causal, std::optional<double>) {
  const auto [query_grad, key_grad, value_grad] = flash_backward(query, key, value, is_causal);
  return {query_grad, key_grad, value_grad, at::Tensor()};
}

// True where only plain products are left, which keep every score.
bool is_plain(const at::Tensor& query, Optional mask, double dropout, bool has_grouped_heads) {
  if ((mask && mask->defined()) || has_grouped_heads || query.dim() != 4) return true;
  if (!device_config().is_gpu) return dropout > 0.0;  // the CPU's flash kernel has no dropout
  return query.scalar_type() == at::kDouble || query.size(-1) % 8 != 0;
}

// As sdp_utils.cpp orders them on a GPU: the flash kernels take half precision and heads up to 256
// wide in multiples of 8 (cuDNN's take as much memory), the memory-efficient kernel takes the rest.
at::Tensor attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                     Optional mask, double dropout, bool is_causal, std::optional<double> scale,
                     bool has_grouped_heads) {
  recorder().add_attention(key.numel() + value.numel());
  const bool is_half = arithmetic_of(query.scalar_type()) == Arithmetic::kHalf;
  if (is_plain(query, mask, dropout, has_grouped_heads)) {
    return std::get<0>(at::_scaled_dot_product_attention_math(
        query, key, value, mask, dropout, is_causal, {}, scale, has_grouped_heads));
  }
  if (!device_config().is_gpu || (is_half && query.size(-1) <= 256)) {
    return std::get<0>(at::_scaled_dot_product_flash_attention(query, key, value, dropout,
                                                               is_causal, false, scale));
  }
  const bool needs_gradient = query.requires_grad() || key.requires_grad() || value.requires_grad();
  return std::get<0>(at::_scaled_dot_product_efficient_attention(
      query, key, value, {}, needs_gradient, dropout, is_causal, scale));
}

}  // namespace

void register_attention(torch::Library& library) {
  library.impl("_scaled_dot_product_flash_attention", &flash);
  library.impl("_scaled_dot_product_flash_attention_backward", &flash_gradients);
  library.impl("_scaled_dot_product_cudnn_attention", &cudnn);
  library.impl("_scaled_dot_product_cudnn_attention_backward", &cudnn_gradients);
  library.impl("_scaled_dot_product_efficient_attention", &efficient);
  library.impl("_scaled_dot_product_efficient_attention_backward", &efficient_gradients);
}

void register_attention_choice(torch::Library& autograd_library) {
  autograd_library.impl("scaled_dot_product_attention", &attention);
}

}  // namespace assay::estimate::shape_kernels
