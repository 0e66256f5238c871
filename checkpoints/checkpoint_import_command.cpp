// `assay checkpoint import`: weights of torchvision or Hugging Face as a start for training.
#include <iostream>
#include <list>
#include <memory>
#include <set>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "checkpoints/checkpoint_subcommands.h"
#include "checkpoints/json_fields.h"
#include "checkpoints/layout.h"
#include "checkpoints/published_names.h"
#include "checkpoints/tensor_values.h"

namespace assay::checkpoints {
namespace {

constexpr std::string_view kWholeFile = "model.safetensors";
constexpr std::string_view kIndexFile = "model.safetensors.index.json";

// The files of a folder as Hugging Face writes it: one, or those that its index names.
std::vector<std::string> files_of_folder(const std::string& folder) {
  const std::string whole = join_path(folder, kWholeFile);
  if (path_exists(whole)) return {whole};
  const std::string index = join_path(folder, kIndexFile);
  if (!path_exists(index)) {
    throw CheckpointError(cat(folder, " holds neither ", kWholeFile, " nor ", kIndexFile,
                              ". Fix: give a .safetensors file or a folder with one"));
  }
  const nlohmann::json json = parse_checkpoint_json(read_file(index), index);
  std::set<std::string> names;
  const nlohmann::json map =
      json.is_object() && json.contains("weight_map") ? json["weight_map"] : nlohmann::json();
  for (const auto& [tensor, file] : map.items()) {
    if (!file.is_string() || file.get<std::string>().find('/') != std::string::npos) {
      throw CheckpointError(
          cat(index, ": weight_map names ", file.dump(), " for ", quoted(tensor),
              ", expected a file beside it. Fix: use another copy of the folder"));
    }
    names.insert(file.get<std::string>());
  }
  if (names.empty()) {
    throw CheckpointError(
        cat(index, ": weight_map names no file. Fix: use another copy of the folder"));
  }
  std::vector<std::string> paths;
  for (const std::string& name : names) paths.push_back(join_path(folder, name));
  return paths;
}

// Open files, and the tensors of all of them; float16 and bfloat16 as float32.
struct ImportedWeights {
  std::vector<std::unique_ptr<SafetensorsFile>> files;
  std::list<std::vector<unsigned char>> converted;
  std::vector<TensorView> tensors;
};

ImportedWeights read_weights(const std::string& path) {
  ImportedWeights weights;
  std::vector<TensorView> all;
  for (const std::string& file : is_directory(path) ? files_of_folder(path) : std::vector{path}) {
    weights.files.push_back(std::make_unique<SafetensorsFile>(file));
    const std::vector<TensorView>& tensors = weights.files.back()->tensors();
    all.insert(all.end(), tensors.begin(), tensors.end());
  }
  weights.tensors = with_own_names(all, path);
  for (TensorView& tensor : weights.tensors) {
    if (tensor.dtype != "F16" && tensor.dtype != "BF16") continue;
    weights.converted.push_back(as_float32(tensor));
    tensor.dtype = "F32";
    tensor.bytes = weights.converted.back().data();
    tensor.byte_count = weights.converted.back().size();
  }
  return weights;
}

}  // namespace

int import_command(const CommandOptions& options) {
  const std::string output = checked_output_file(options, "assay checkpoint import");
  const ImportedWeights weights = read_weights(without_trailing_slashes(options.paths.front()));
  const WrittenFile written = write_whole(output, weights.tensors, {});
  nlohmann::ordered_json json;
  json["source"] = escaped(options.paths.front());
  json["output"] = escaped(output);
  json["tensors"] = written.tensors.size();
  json["converted_to_float32"] = weights.converted.size();
  json["bytes"] = written.bytes;
  json["xxh3"] = written.xxh3;
  const std::string text =
      cat("wrote ", written.tensors.size(), " tensors of ", escaped(options.paths.front()), " to ",
          escaped(output), " (", bytes_text(written.bytes),
          weights.converted.empty() ? "" : cat(", ", weights.converted.size(), " made float32"),
          "). Train from it: assay train --model NAME model.init_from=", escaped(output), "\n");
  std::cout << (options.is_json ? dump_json(json, "the report") : text);
  return static_cast<int>(ExitCode::kOk);
}

}  // namespace assay::checkpoints
