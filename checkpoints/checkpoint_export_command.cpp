// `assay checkpoint export`: the weights alone, for other programs.
#include <iostream>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "checkpoints/checkpoint_subcommands.h"
#include "checkpoints/json_fields.h"
#include "checkpoints/layout.h"
#include "checkpoints/reader.h"

namespace assay::checkpoints {
namespace {

// Whole or not at all: beside the target first, then renamed. No fault points: not part of a save.
WrittenFile write_whole(const std::string& path, const std::vector<TensorView>& tensors,
                        const std::map<std::string, std::string>& metadata, int64_t step) {
  const std::string temporary = path + temporary_name(step);
  try {
    WrittenFile written = write_safetensors(temporary, tensors, metadata, "");
    rename_path(temporary, path, "");
    sync_directory(parent_path(path), "");
    return written;
  } catch (...) {
    remove_file(temporary);
    throw;
  }
}

}  // namespace

int export_command(const CommandOptions& options) {
  if (options.output.empty()) {
    throw ConfigError(
        "assay checkpoint export needs --output FILE.safetensors. Fix: name the file to "
        "write");
  }
  if (!options.output.ends_with(".safetensors")) {
    throw ConfigError(cat("--output is ", quoted(options.output),
                          ", must end with .safetensors. Fix: "
                          "--output ",
                          options.output, ".safetensors"));
  }
  if (path_exists(options.output)) {
    throw ConfigError(cat("--output ", quoted(options.output),
                          " exists already. Fix: remove it or give "
                          "another name"));
  }
  const Checkpoint checkpoint = open_checkpoint(single_checkpoint(options.paths.front()));
  const WrittenFile written = write_whole(options.output, checkpoint.model->tensors(),
                                          checkpoint.model->metadata(), checkpoint.manifest.step);
  nlohmann::ordered_json json;
  json["checkpoint"] = escaped(checkpoint.path);
  json["output"] = escaped(options.output);
  json["tensors"] = written.tensors.size();
  json["bytes"] = written.bytes;
  json["xxh3"] = written.xxh3;
  const std::string text =
      cat("wrote ", written.tensors.size(), " tensors of ", escaped(checkpoint.path), " to ",
          escaped(options.output), " (", bytes_text(written.bytes), ")\n");
  std::cout << (options.is_json ? dump_json(json, "the report") : text);
  return static_cast<int>(ExitCode::kOk);
}

}  // namespace assay::checkpoints
