// Weights under the names that torchvision and Hugging Face give them. The models' own names are
// the same but for what files from elsewhere add or leave out. Torch-free.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "checkpoints/safetensors.h"

namespace assay::checkpoints {

// True for the weights of a GPT-2, with or without the prefix "transformer.".
bool is_gpt2(const std::vector<TensorView>& tensors);

// The tensors under the names that the models here have. torchvision's are those already. Of a
// GPT-2 from Hugging Face the prefix "transformer." is put before names that lack it, the attention
// masks that old files hold are left out, and so is an output layer that equals the token table to
// which it is tied. Throws CheckpointError naming `origin` if it does not equal it, or if two
// tensors get one name.
std::vector<TensorView> with_own_names(const std::vector<TensorView>& tensors,
                                       const std::string& origin);

// Hugging Face's config.json for a checkpoint's GPT-2: sizes from the tensors, heads and dropout
// from the run's configuration (config_json of its trainer_state.json). Throws CheckpointError
// naming `origin` if they do not fit.
std::string gpt2_config_json(const std::vector<TensorView>& tensors, std::string_view config_json,
                             const std::string& origin);

}  // namespace assay::checkpoints
