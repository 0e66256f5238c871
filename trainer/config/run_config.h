// The resolved settings of one training run: plain values with defaults, no behaviour. fields.cpp
// holds the one table from which parsing, --help, validation, config.json and the digest come.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace assay::config {

struct ModelConfig {
  std::string name = "mnist_cnn";
  // Sizes of the GPT family; unset: the named model's own.
  std::optional<int64_t> n_layer;
  std::optional<int64_t> n_head;
  std::optional<int64_t> n_embd;
  std::optional<int64_t> n_positions;  // context length, tokens
  std::optional<int64_t> vocab_size;
  std::optional<double> dropout;  // unset: the model's own; 0 switches every dropout off
  // Sizes of image models; unset: the named model's own.
  std::optional<int64_t> num_classes;
  std::optional<int64_t> image_size;  // side of the square image, pixels
  std::string init_from;              // safetensors file with the first weights; empty: drawn
};

struct DataConfig {
  std::string name;       // empty: digits for image models, text for GPTs
  std::string directory;  // data_dir; empty: embedded or the system's package
  std::optional<int64_t> max_train_samples;
  std::optional<int64_t> max_eval_samples;
  std::optional<int64_t> sequence_length;    // tokens a sample; unset: the model's n_positions
  std::optional<int64_t> token_bits;         // of token files without a header: 16 or 32; unset: 16
  std::optional<int64_t> synthetic_samples;  // size of `synthetic`; unset: 1024
  bool augment = true;               // training images: random crop and flip, where the set has it
  std::string jpeg_scale = "exact";  // exact | auto
  bool shuffle = true;
  bool drop_last = false;
  std::optional<int64_t> num_workers;  // this rank's loader threads; unset: automatic, 0: none
  int64_t prefetch_factor = 2;         // batches ready a worker
  bool pin_memory = true;              // with CUDA only
};

struct OptimizerConfig {
  std::string name = "adamw";  // sgd | adam | adamw
  double learning_rate = 1e-3;
  double weight_decay = 0.0;
  double adam_beta1 = 0.9;
  double adam_beta2 = 0.999;
  double adam_epsilon = 1e-8;
  double momentum = 0.9;       // sgd
  bool nesterov = false;       // sgd
  double max_grad_norm = 0.0;  // 0: no clipping
};

struct ScheduleConfig {
  // constant | constant_with_warmup | linear | cosine | step | multistep | wsd
  std::string type = "constant";
  int64_t warmup_steps = 0;
  double min_lr_ratio = 0.0;           // where a decay ends, as a fraction of learning_rate
  std::optional<int64_t> total_steps;  // horizon; unset: max_steps at the first start
  std::optional<int64_t> step_size;    // step: updates between two falls
  std::string milestones;              // multistep: the updates at which it falls, "32000,48000"
  double gamma = 0.1;                  // step, multistep: factor of a fall
  std::optional<int64_t> decay_steps;  // wsd: updates of its decay, the last before total_steps
};

struct CheckpointConfig {
  int64_t save_steps = 500;      // 0: only the last step
  int64_t save_total_limit = 0;  // 0: keep all
};

struct DdpConfig {                    // several ranks; without effect on one
  std::string backend = "auto";       // auto | nccl | gloo
  double bucket_mb = 25.0;            // MiB of gradients reduced at once
  double first_bucket_mb = 1.0;       // of the bucket that is reduced first
  std::string reduce_dtype = "full";  // full | bf16: what travels between ranks
  bool static_graph = false;
  bool sync_batch_norm = false;  // batch norm over all ranks' images
  bool shard_optimizer = false;  // each rank keeps the optimizer's state of its share (ZeRO-1)
  int64_t check_replicas_steps = 100;  // 0: at the start only
  double timeout_seconds = 600.0;      // one step's collectives
  double join_timeout_seconds = 30.0;  // without a new rank arriving
};

struct RunConfig {
  ModelConfig model;
  DataConfig data;
  OptimizerConfig optimizer;
  ScheduleConfig schedule;
  CheckpointConfig checkpoint;
  DdpConfig ddp;

  std::string output_dir;  // empty: runs/<UTC>-<model>
  bool overwrite_output_dir = false;
  std::string resume_from_checkpoint;  // PATH | latest | auto; empty: start anew
  std::string allow_config_change;     // keys, comma separated

  std::optional<int64_t> max_steps;  // update attempts; wins over epochs
  double num_train_epochs = 3.0;
  int64_t batch_size = 64;  // micro_batch_size: per rank and forward
  int64_t gradient_accumulation_steps = 1;
  double label_smoothing_factor = 0.0;
  uint64_t seed = 42;
  std::string precision = "fp32";  // fp32 | bf16 | fp16 | fp64 (--bf16, --fp16, --fp64)
  bool deterministic = false;
  std::string device = "auto";  // auto | cpu | cuda
  int64_t num_threads = 0;      // CPU compute threads; 0: CPUs this process may use

  int64_t logging_steps = 10;  // terminal lines; metrics.jsonl has every step. 0: never
  int64_t eval_steps = 0;      // 0: after the last step only
  bool log_sample_ids = false;
  bool tensorboard = true;
};

}  // namespace assay::config
