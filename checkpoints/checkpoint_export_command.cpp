// `assay checkpoint export`: the weights alone, for other programs.
#include <iostream>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "checkpoints/checkpoint_subcommands.h"
#include "checkpoints/json_fields.h"
#include "checkpoints/layout.h"
#include "checkpoints/published_names.h"
#include "checkpoints/reader.h"

namespace assay::checkpoints {
namespace {

constexpr std::string_view kHuggingFace = "hf";
constexpr std::string_view kTorchvision = "torchvision";

void check_absent(const CommandOptions& options, std::string_view command, std::string_view what) {
  if (options.output.empty()) {
    throw ConfigError(
        cat(command, " needs --output ", what, ". Fix: name the file or folder to write"));
  }
  if (!path_exists(options.output)) return;
  throw ConfigError(cat("--output ", quoted(options.output),
                        " exists already. Fix: remove it or give another name"));
}

// Whole or not at all: beside the target first, then renamed. No fault points: not part of a save.
template <class Write>
WrittenFile write_then_rename(const std::string& path, const Write& write) {
  const std::string temporary = path + temporary_name(0);
  try {
    WrittenFile written = write(temporary);
    rename_path(temporary, path, "");
    sync_directory(parent_path(path), "");
    return written;
  } catch (...) {
    remove_tree(temporary);
    throw;
  }
}

// A folder that from_pretrained reads.
WrittenFile write_gpt2_folder(const std::string& folder, const Checkpoint& checkpoint) {
  const std::vector<TensorView>& tensors = checkpoint.model->tensors();
  const std::string config =
      gpt2_config_json(tensors, checkpoint.trainer.config_json, checkpoint.path);
  return write_then_rename(folder, [&](const std::string& temporary) {
    create_directories(temporary);
    write_file_durably(join_path(temporary, "config.json"), config, "");
    return write_safetensors(join_path(temporary, kModelFile), tensors, {}, "");
  });
}

void check_format_fits(const Checkpoint& checkpoint, const std::string& format) {
  const bool is_gpt = is_gpt2(checkpoint.model->tensors());
  if (format == kHuggingFace && !is_gpt) {
    throw ConfigError(cat("--format hf writes GPT-2 models, ", checkpoint.path,
                          " holds another. Fix: --format torchvision"));
  }
  if (format == kTorchvision && is_gpt) {
    throw ConfigError(cat("--format torchvision writes image models, ", checkpoint.path,
                          " holds a GPT-2. Fix: --format hf"));
  }
}

}  // namespace

std::string checked_output_file(const CommandOptions& options, std::string_view command) {
  check_absent(options, command, "FILE.safetensors");
  if (options.output.ends_with(".safetensors")) return options.output;
  throw ConfigError(cat("--output is ", quoted(options.output),
                        ", must end with .safetensors. Fix: --output ", options.output,
                        ".safetensors"));
}

WrittenFile write_whole(const std::string& path, const std::vector<TensorView>& tensors,
                        const std::map<std::string, std::string>& metadata) {
  return write_then_rename(path, [&](const std::string& temporary) {
    return write_safetensors(temporary, tensors, metadata, "");
  });
}

int export_command(const CommandOptions& options) {
  constexpr std::string_view kCommand = "assay checkpoint export";
  const bool is_folder = options.format == kHuggingFace;
  if (is_folder) {
    check_absent(options, kCommand, "FOLDER");
  } else {
    checked_output_file(options, kCommand);
  }
  const Checkpoint checkpoint = open_checkpoint(single_checkpoint(options.paths.front()));
  check_format_fits(checkpoint, options.format);
  const std::string output = without_trailing_slashes(options.output);
  const WrittenFile written =
      is_folder ? write_gpt2_folder(output, checkpoint)
                : write_whole(output, checkpoint.model->tensors(), checkpoint.model->metadata());
  nlohmann::ordered_json json;
  json["checkpoint"] = escaped(checkpoint.path);
  json["output"] = escaped(output);
  json["tensors"] = written.tensors.size();
  json["bytes"] = written.bytes;
  json["xxh3"] = written.xxh3;
  const std::string text =
      cat("wrote ", written.tensors.size(), " tensors of ", escaped(checkpoint.path), " to ",
          escaped(output), " (", bytes_text(written.bytes), ")\n");
  std::cout << (options.is_json ? dump_json(json, "the report") : text);
  return static_cast<int>(ExitCode::kOk);
}

}  // namespace assay::checkpoints
