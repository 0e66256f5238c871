// `assay data pack`: a data set as packed shards. Prints to stdout, progress to stderr.
#include <algorithm>
#include <iostream>

#include <cxxopts.hpp>

#include "base/error.h"
#include "base/text.h"
#include "data/command_words.h"
#include "data/data_commands.h"
#include "data/dataset_guess.h"
#include "data/pack.h"

namespace assay::data {
namespace {

const std::vector<std::string> kOptions = {
    "content",   "data_dir",        "help",          "image_size", "output",
    "overwrite", "sequence_length", "shard_samples", "threads",    "token_bits"};

cxxopts::Options make_options() {
  cxxopts::Options options(
      "assay data pack",
      "Writes a data set as packed shards for the data set `packed`: aligned, with a checksum of "
      "every\nsample, mapped into memory when they are read (data/FORMAT.md).\n");
  options.custom_help("NAME_OR_PATH --output DIR [options]");
  options.positional_help("");
  const auto text = [](const char* value) {
    return cxxopts::value<std::string>()->default_value(value);
  };
  auto data = options.add_options("Data");
  data("data_dir", "folder, file or pattern of the data set (default: embedded, or the system's)",
       text(""), "PATH");
  data("content",
       "image files: pixels (resized once and cropped, then as quick to read as can "
       "be), or original (the files' own bytes)",
       text("pixels"), "pixels|original");
  data("image_size", "pixels: height and width of the stored images", text("224"), "N");
  data("sequence_length", "tokens a sample, for a text and for tokens", text("128"), "N");
  data("token_bits", "width of tokens in files that do not say it themselves: 16 or 32", text("16"),
       "N");
  auto output = options.add_options("Output");
  output("output", "folder for the shards; it is made if it is not there", text(""), "DIR");
  output("overwrite", "replace the shards that are there (default: false)");
  output("shard_samples", "samples a shard; 0: shards of about 1 GiB", text("0"), "N");
  output("threads", "0: the CPUs this process may use; the output is the same", text("0"), "N");
  output("h,help", "show this text");
  options.add_options()("words", "", cxxopts::value<std::vector<std::string>>());
  options.parse_positional({"words"});
  return options;
}

DataRequest data_request(const cxxopts::ParseResult& parsed) {
  const auto text = [&parsed](const char* name) { return parsed[name].as<std::string>(); };
  std::vector<std::string> targets;
  if (parsed.count("words") > 0) targets = parsed["words"].as<std::vector<std::string>>();
  if (targets.size() != 1) {
    throw ConfigError(cat("assay data pack got ", targets.size(),
                          " words, must be 1: a data set's name or path. Fix: e.g. assay data pack "
                          "digits --output packed-digits"));
  }
  DataRequest request = guessed_request(targets[0], text("data_dir"));
  request.sequence_length =
      whole_number(text("sequence_length"), "sequence_length", {.low = 1, .high = 1 << 24});
  if (parsed.count("token_bits") > 0) {
    check_choice(text("token_bits"), "token_bits", {"16", "32"});
    request.token_bits = parse_int64(text("token_bits"));
  }
  const int64_t size = whole_number(text("image_size"), "image_size", {.low = 1, .high = 16384});
  check_choice(text("content"), "content", {"original", "pixels"});
  const bool has_image_files = request.name == "image_folder" || request.name == "tar_shards";
  if (parsed.count("image_size") > 0 || has_image_files) {
    request.image_shape = {3, size, size};
  }
  return request;
}

}  // namespace

int run_pack_command(std::span<const std::string> words, int64_t cpus) {
  cxxopts::Options options = make_options();
  const auto parsed = parse_command_words(options, words, kOptions, "pack");
  if (parsed.count("help") > 0) {
    std::cout << options.help({"Data", "Output"});
    return static_cast<int>(ExitCode::kOk);
  }
  const auto text = [&parsed](const char* name) { return parsed[name].as<std::string>(); };
  PackRequest request;
  request.output_dir = text("output");
  if (request.output_dir.empty()) {
    throw ConfigError("assay data pack got no --output. Fix: --output DIR");
  }
  request.may_overwrite = parsed.count("overwrite") > 0 && parsed["overwrite"].as<bool>();
  request.shard_samples =
      whole_number(text("shard_samples"), "shard_samples", {.low = 0, .high = int64_t{1} << 40});
  request.num_threads = thread_count(text("threads"), cpus);
  const OpenedData data = open_data(data_request(parsed));
  request.is_original = text("content") == "original";
  std::vector<PackedShard> shards;
  {
    ProgressLine progress(cat("packing ", data.name));
    request.on_progress = [&](uint64_t done, uint64_t total) { progress.show(done, total); };
    shards = pack_data(data, request);
  }
  for (const PackedShard& shard : shards) {
    std::cout << shard.file.path << "  " << shard.samples << " samples, " << shard.file.bytes
              << " bytes, sha256 " << shard.file.sha256 << "\n";
  }
  return static_cast<int>(ExitCode::kOk);
}

}  // namespace assay::data
