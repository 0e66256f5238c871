// The GPT-2 family: a decoder-only transformer (Vaswani et al. 2017, sec. 3) with layer norms
// before each sub-block and one after the last block (Radford et al. 2019, sec. 2.3). This is the
// reference lane: plain ATen operators, no kernels of our own.
#include "models/gpt2.h"

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <torch/nn/module.h>
#include <torch/nn/modules/container/modulelist.h>

#include "base/error.h"
#include "base/text.h"
#include "models/sizes.h"
#include "trainer/config/model_sizes.h"

namespace assay::models {
namespace {

// B batch, T tokens, D width (n_embd), H heads, d = D / H width of a head, V vocabulary,
// C context (n_positions), T <= C

// Standard deviation of every weight and embedding at the start: initializer_range of the
// published configurations, after Radford et al. 2018, sec. 4.1 ("N(0, 0.02)").
constexpr double kInitialStddev = 0.02;
// Inside the square root of the layer norm: layer_norm_epsilon of the published configurations.
constexpr double kLayerNormEpsilon = 1e-5;

at::Tensor normal_weight(at::IntArrayRef shape, double stddev, at::Device device) {
  return at::empty(shape, device).normal_(0.0, stddev);
}

// y = x W + b with W stored [in, out]: "Conv1D" of the published GPT-2 code, the transpose of
// what torch::nn::Linear stores.
class Conv1DImpl : public torch::nn::Module {
 public:
  Conv1DImpl(at::IntArrayRef in_out, double stddev, at::Device device)
      : weight_(register_parameter("weight", normal_weight(in_out, stddev, device))),
        bias_(register_parameter("bias", at::zeros({in_out[1]}, device))) {}

  at::Tensor forward(const at::Tensor& x) {                    // [B, T, in]
    const at::Tensor rows = x.reshape({-1, weight_.size(0)});  // [B*T, in]
    const at::Tensor y = at::addmm(bias_, rows, weight_);      // [B*T, out]
    return y.view({x.size(0), x.size(1), weight_.size(1)});    // [B, T, out]
  }

 private:
  at::Tensor weight_;  // [in, out]
  at::Tensor bias_;    // [out]
};

// (x - mean) / sqrt(variance + epsilon) * weight + bias over the width, with the biased variance
// (Ba et al. 2016, eq. 3 and sec. 3.1).
class WidthNormImpl : public torch::nn::Module {
 public:
  WidthNormImpl(int64_t width, at::Device device)
      : weight_(register_parameter("weight", at::ones({width}, device))),
        bias_(register_parameter("bias", at::zeros({width}, device))) {}

  at::Tensor forward(const at::Tensor& x) {                                        // [B, T, D]
    return at::layer_norm(x, weight_.sizes(), weight_, bias_, kLayerNormEpsilon);  // [B, T, D]
  }

 private:
  at::Tensor weight_;  // [D]
  at::Tensor bias_;    // [D]
};

// A table with one row of width D an index.
class TableImpl : public torch::nn::Module {
 public:
  TableImpl(at::IntArrayRef rows_width, at::Device device)
      : weight_(register_parameter("weight", normal_weight(rows_width, kInitialStddev, device))) {}

  const at::Tensor& weight() const { return weight_; }

 private:
  at::Tensor weight_;  // [rows, D]
};

// "A modified initialization which accounts for the accumulation on the residual path with model
// depth": weights that write to the residual path are scaled by 1 / sqrt(N), N = 2 * n_layer of
// them (Radford et al. 2019, sec. 2.3).
double residual_stddev(const config::GptSizes& sizes) {
  return kInitialStddev / std::sqrt(2.0 * static_cast<double>(sizes.n_layer));
}

// softmax(Q K^T / sqrt(d)) V a head, each token seeing itself and earlier ones only (Vaswani et
// al. 2017, sec. 3.2.1 and 3.2.3).
class CausalSelfAttentionImpl : public torch::nn::Module {
 public:
  CausalSelfAttentionImpl(const config::GptSizes& sizes, at::Device device)
      : n_head_(sizes.n_head), dropout_(sizes.dropout) {
    const int64_t width = sizes.n_embd;
    c_attn_ = register_module(
        "c_attn",
        std::make_shared<Conv1DImpl>(at::IntArrayRef({width, 3 * width}), kInitialStddev, device));
    c_proj_ =
        register_module("c_proj", std::make_shared<Conv1DImpl>(at::IntArrayRef({width, width}),
                                                               residual_stddev(sizes), device));
  }

  at::Tensor forward(const at::Tensor& x) {                                // [B, T, D]
    const std::vector<at::Tensor> qkv = c_attn_->forward(x).chunk(3, -1);  // 3 of [B, T, D]
    const at::Tensor query = split_heads(qkv[0]);                          // [B, H, T, d]
    const at::Tensor key = split_heads(qkv[1]);                            // [B, H, T, d]
    const at::Tensor value = split_heads(qkv[2]);                          // [B, H, T, d]
    const double dropout = is_training() ? dropout_ : 0.0;
    at::Tensor y = at::scaled_dot_product_attention(query, key, value, {}, dropout,
                                                    /*is_causal=*/true);  // [B, H, T, d]
    y = y.transpose(1, 2).reshape(x.sizes());                             // [B, T, D]
    return at::dropout(c_proj_->forward(y), dropout_, is_training());     // [B, T, D]
  }

 private:
  at::Tensor split_heads(const at::Tensor& x) const {  // [B, T, D]
    const int64_t head_width = x.size(2) / n_head_;
    return x
        .view({x.size(0), x.size(1), n_head_, head_width})  // [B, T, H, d]
        .transpose(1, 2);                                   // [B, H, T, d]
  }

  int64_t n_head_;
  double dropout_;
  std::shared_ptr<Conv1DImpl> c_attn_;
  std::shared_ptr<Conv1DImpl> c_proj_;
};

// Position-wise feed-forward network, four times as wide inside (Vaswani et al. 2017, sec. 3.3;
// Radford et al. 2018, sec. 4.1).
class FeedForwardImpl : public torch::nn::Module {
 public:
  FeedForwardImpl(const config::GptSizes& sizes, at::Device device) : dropout_(sizes.dropout) {
    const int64_t width = sizes.n_embd;
    c_fc_ = register_module(
        "c_fc",
        std::make_shared<Conv1DImpl>(at::IntArrayRef({width, 4 * width}), kInitialStddev, device));
    c_proj_ =
        register_module("c_proj", std::make_shared<Conv1DImpl>(at::IntArrayRef({4 * width, width}),
                                                               residual_stddev(sizes), device));
  }

  at::Tensor forward(const at::Tensor& x) {  // [B, T, D]
    // 0.5 h (1 + tanh(sqrt(2/pi) (h + 0.044715 h^3))): Hendrycks & Gimpel 2016, sec. 2
    const at::Tensor h = at::gelu(c_fc_->forward(x), "tanh");          // [B, T, 4 D]
    return at::dropout(c_proj_->forward(h), dropout_, is_training());  // [B, T, D]
  }

 private:
  double dropout_;
  std::shared_ptr<Conv1DImpl> c_fc_;
  std::shared_ptr<Conv1DImpl> c_proj_;
};

class BlockImpl : public torch::nn::Module {
 public:
  BlockImpl(const config::GptSizes& sizes, at::Device device)
      : ln_1_(register_module("ln_1", std::make_shared<WidthNormImpl>(sizes.n_embd, device))),
        attn_(register_module("attn", std::make_shared<CausalSelfAttentionImpl>(sizes, device))),
        ln_2_(register_module("ln_2", std::make_shared<WidthNormImpl>(sizes.n_embd, device))),
        mlp_(register_module("mlp", std::make_shared<FeedForwardImpl>(sizes, device))) {}

  at::Tensor forward(const at::Tensor& x) {                      // [B, T, D]
    const at::Tensor y = x + attn_->forward(ln_1_->forward(x));  // [B, T, D]
    return y + mlp_->forward(ln_2_->forward(y));                 // [B, T, D]
  }

 private:
  std::shared_ptr<WidthNormImpl> ln_1_;
  std::shared_ptr<CausalSelfAttentionImpl> attn_;
  std::shared_ptr<WidthNormImpl> ln_2_;
  std::shared_ptr<FeedForwardImpl> mlp_;
};

class TransformerImpl : public torch::nn::Module {
 public:
  TransformerImpl(const config::GptSizes& sizes, at::Device device) : dropout_(sizes.dropout) {
    const int64_t width = sizes.n_embd;
    wte_ = register_module(
        "wte", std::make_shared<TableImpl>(at::IntArrayRef({sizes.vocab_size, width}), device));
    wpe_ = register_module(
        "wpe", std::make_shared<TableImpl>(at::IntArrayRef({sizes.n_positions, width}), device));
    h_ = register_module("h", torch::nn::ModuleList());
    for (int64_t layer = 0; layer < sizes.n_layer; ++layer) {
      blocks_.push_back(std::make_shared<BlockImpl>(sizes, device));
      h_->push_back(blocks_.back());
    }
    ln_f_ = register_module("ln_f", std::make_shared<WidthNormImpl>(width, device));
  }

  const at::Tensor& token_table() const { return wte_->weight(); }  // [V, D]

  at::Tensor forward(const at::Tensor& tokens) {                                    // [B, T] int64
    const at::Tensor by_token = at::embedding(wte_->weight(), tokens);              // [B, T, D]
    const at::Tensor by_position = wpe_->weight().narrow(0, 0, tokens.size(1));     // [T, D]
    at::Tensor x = at::dropout(by_token + by_position, dropout_, is_training());    // [B, T, D]
    for (const std::shared_ptr<BlockImpl>& block : blocks_) x = block->forward(x);  // [B, T, D]
    return ln_f_->forward(x);                                                       // [B, T, D]
  }

 private:
  double dropout_;
  std::shared_ptr<TableImpl> wte_;
  std::shared_ptr<TableImpl> wpe_;
  torch::nn::ModuleList h_{nullptr};
  std::vector<std::shared_ptr<BlockImpl>> blocks_;  // the entries of h_, typed
  std::shared_ptr<WidthNormImpl> ln_f_;
};

class Gpt2Impl : public torch::nn::Module {
 public:
  Gpt2Impl(std::string name, const config::GptSizes& sizes, at::Device device)
      : name_(std::move(name)),
        sizes_(sizes),
        transformer_(
            register_module("transformer", std::make_shared<TransformerImpl>(sizes, device))) {}

  // The output layer is the token table itself (Press & Wolf 2017, sec. 2), so it has no
  // parameter of its own and no name.
  at::Tensor forward(const at::Tensor& tokens) {  // [B, T] int64
    check_tokens(tokens);
    const at::Tensor x = transformer_->forward(tokens);  // [B, T, D]
    return at::linear(x, transformer_->token_table());   // [B, T, V]
  }

 private:
  void check_tokens(const at::Tensor& tokens) const {
    if (tokens.dim() != 2 || tokens.scalar_type() != at::kLong) {
      throw InternalError(cat(name_, " got tokens of shape ", shape_text(tokens.sizes()),
                              " and type ", c10::toString(tokens.scalar_type()),
                              ", expected [B, T] of type Long"));
    }
    if (tokens.size(1) > sizes_.n_positions) {
      throw ConfigError(cat("a sequence has ", tokens.size(1), " tokens, model ", name_,
                            " takes at most ", sizes_.n_positions, " (model.n_positions). Fix: ",
                            "set data.sequence_length=", sizes_.n_positions, " or less, or ",
                            "model.n_positions=", tokens.size(1)));
    }
    // On a GPU the look at the values would stall the stream; the data sets check them there.
    if (tokens.is_cpu() && tokens.numel() > 0) check_ids(tokens);
  }

  void check_ids(const at::Tensor& tokens) const {
    const auto [smallest, largest] = at::aminmax(tokens);
    const int64_t low = smallest.item<int64_t>();
    const int64_t high = largest.item<int64_t>();
    if (low >= 0 && high < sizes_.vocab_size) return;
    throw DataError(cat("the data holds token id ", low < 0 ? low : high, ", model ", name_,
                        " takes ids from 0 to ", sizes_.vocab_size - 1,
                        " (model.vocab_size=", sizes_.vocab_size,
                        "). Fix: use data of this vocabulary, or set model.vocab_size to it"));
  }

  std::string name_;
  config::GptSizes sizes_;
  std::shared_ptr<TransformerImpl> transformer_;
};

config::GptSizes checked_sizes(const config::ModelConfig& config) {
  const config::GptSizes sizes = config::gpt_sizes(config);
  check_size(config.name, "model.n_layer", sizes.n_layer);
  check_size(config.name, "model.n_head", sizes.n_head);
  check_size(config.name, "model.n_embd", sizes.n_embd);
  check_size(config.name, "model.n_positions", sizes.n_positions);
  check_size(config.name, "model.vocab_size", sizes.vocab_size);
  check_dropout(config.name, sizes.dropout);
  if (sizes.n_embd % sizes.n_head != 0) {
    const int64_t next = (sizes.n_embd / sizes.n_head + 1) * sizes.n_head;
    throw ConfigError(cat("model.n_embd is ", sizes.n_embd, ", must be a multiple of ",
                          "model.n_head, ", sizes.n_head, " (model ", config.name,
                          "). Fix: set one of them, e.g. model.n_embd=", next));
  }
  return sizes;
}

}  // namespace

ModelShape gpt2_shape(const config::ModelConfig& config) {
  const config::GptSizes sizes = checked_sizes(config);
  return {.task = Task::kLanguageModel,
          .num_classes = sizes.vocab_size,
          .image_shape = {},
          .context_length = sizes.n_positions};
}

Model make_gpt2(const config::ModelConfig& config, Weights weights) {
  const config::GptSizes sizes = checked_sizes(config);
  const at::Device device = weights == Weights::kShapesOnly ? at::kMeta : at::kCPU;
  auto module = std::make_shared<Gpt2Impl>(config.name, sizes, device);
  return {.name = config.name,
          .task = Task::kLanguageModel,
          .module = module,
          .forward = [module](const at::Tensor& tokens) { return module->forward(tokens); },
          .num_classes = sizes.vocab_size,
          .image_shape = {},
          .context_length = sizes.n_positions};
}

}  // namespace assay::models
