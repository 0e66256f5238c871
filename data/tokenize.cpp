#include "data/tokenize.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include <nlohmann/json.hpp>

#include "base/digest.h"
#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "data/encode_text.h"
#include "data/output_file.h"
#include "data/token_file.h"
#include "data/token_manifest.h"
#include "data/utf8.h"

namespace assay::data {
namespace {

// A part of one document.
struct Segment {
  const std::string* path = nullptr;
  std::string_view text;
  size_t offset = 0;  // of the text in its file
  bool is_document_end = false;
};

struct Document {
  std::string path;
  MappedFile map;
  std::string_view text() const { return {reinterpret_cast<const char*>(map.data()), map.size()}; }
};

void check_request(const Tokenizer& tokenizer, const TokenizeRequest& request) {
  if (request.inputs.empty()) {
    throw ConfigError("assay data tokenize got no text. Fix: name one or more text files");
  }
  if (!(request.val_fraction >= 0 && request.val_fraction < 1)) {
    throw ConfigError(cat("val_fraction is ", request.val_fraction,
                          ", must be in [0, 1). Fix: --val_fraction 0.1"));
  }
  if (request.has_end_of_text && tokenizer.end_of_text() < 0) {
    throw ConfigError(cat("end_of_text is set, but the tokenizer ", tokenizer.name(),
                          " has no such token. Fix: drop --end_of_text, or --tokenizer gpt2"));
  }
}

void check_outputs(const TokenizeRequest& request) {
  if (request.may_overwrite) return;
  for (const char* name : {"train.bin", "val.bin", kTokenManifestName}) {
    const std::string path = join_path(request.output_dir, name);
    if (!path_exists(path)) continue;
    throw ConfigError(cat(path, " is there already and would be replaced. Fix: another --output, ",
                          "or --overwrite"));
  }
}

std::vector<Document> map_documents(const std::vector<std::string>& paths) {
  std::vector<Document> documents;
  for (const std::string& path : paths) {
    try {
      documents.push_back({path, MappedFile(path)});
    } catch (const FileError& error) {
      throw DataError(cat("text: ", error.what(), ". Fix: check the file's name"));
    }
  }
  return documents;
}

bool is_inside_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

struct Splits {
  std::vector<Segment> train;
  std::vector<Segment> val;
};

// All documents in a row; the last val_fraction of their bytes is held out.
Splits split_documents(const std::vector<Document>& documents, double val_fraction) {
  uint64_t total = 0;
  for (const Document& document : documents) total += document.map.size();
  const auto val_bytes =
      static_cast<uint64_t>(std::floor(static_cast<double>(total) * val_fraction));
  uint64_t train_left = total - val_bytes;
  Splits splits;
  for (const Document& document : documents) {
    const std::string_view text = document.text();
    size_t cut = static_cast<size_t>(std::min<uint64_t>(train_left, text.size()));
    while (cut > 0 && cut < text.size() && is_inside_character(text[cut])) ++cut;
    train_left -= std::min<uint64_t>(train_left, text.size());
    const bool is_whole = cut == text.size();
    if (cut > 0) splits.train.push_back({&document.path, text.substr(0, cut), 0, is_whole});
    if (!is_whole) splits.val.push_back({&document.path, text.substr(cut), cut, true});
  }
  return splits;
}

// Checks or repairs a part of a text before it is encoded.
std::string_view valid_part(const Segment& segment, std::string_view part, size_t offset,
                            InvalidUtf8 policy, std::string& buffer) {
  const size_t valid = valid_utf8_prefix(part);
  if (valid == part.size()) return part;
  if (policy == InvalidUtf8::kReplace) {
    buffer = with_replacements(part);
    return buffer;
  }
  const auto byte = static_cast<unsigned char>(part[valid]);
  throw DataError(cat(*segment.path, ": byte ", segment.offset + offset + valid, " (0x",
                      hex_encode({&byte, 1}),
                      ") is not UTF-8. Fix: convert the text, or --invalid_utf8 replace to put "
                      "U+FFFD in such places, or --tokenizer bytes"));
}

class SplitWriter {
 public:
  SplitWriter(const std::string& path, TokenFormat format) : format_(format), output_(path) {
    if (format_ == TokenFormat::kLlmC) output_.write(std::string(kTokenHeaderBytes, '\0'));
  }
  void add(std::span<const uint16_t> ids) {
    output_.write(ids.data(), ids.size_bytes());
    count_ += static_cast<int64_t>(ids.size());
  }
  int64_t count() const { return count_; }
  void commit(const std::string& path) {
    output_.commit(format_ == TokenFormat::kLlmC ? token_header(count_, path) : "");
  }

 private:
  TokenFormat format_;
  OutputFile output_;
  int64_t count_ = 0;
};

struct Progress {
  uint64_t done = 0;
  uint64_t total = 0;
};

TokenizedSplit write_split(const Tokenizer& tokenizer, const TokenizeRequest& request,
                           const std::string& name, const std::vector<Segment>& segments,
                           Progress& progress) {
  TokenizedSplit split{.name = name, .file = {}, .text_bytes = 0, .tokens = 0};
  split.file.path = join_path(request.output_dir, name + ".bin");
  SplitWriter writer(split.file.path, request.format);
  for (const Segment& segment : segments) {
    split.text_bytes += segment.text.size();
    EncodeCalls calls;
    calls.take = [&](std::span<const uint16_t> ids, size_t text_bytes) {
      writer.add(ids);
      progress.done += text_bytes;
      if (request.on_progress) request.on_progress(progress.done, progress.total);
    };
    if (tokenizer.wants_utf8()) {
      calls.prepare = [&](std::string_view part, size_t offset, std::string& buffer) {
        return valid_part(segment, part, offset, request.invalid_utf8, buffer);
      };
    }
    encode_text(tokenizer, segment.text, request.num_threads, calls);
    if (request.has_end_of_text && segment.is_document_end) {
      const auto id = static_cast<uint16_t>(tokenizer.end_of_text());
      writer.add({&id, 1});
    }
  }
  split.tokens = writer.count();
  writer.commit(split.file.path);
  split.file.bytes = file_bytes(split.file.path);
  split.file.sha256 = sha256_file_hex(split.file.path);
  return split;
}

}  // namespace

TokenizeResult tokenize_files(const Tokenizer& tokenizer, const TokenizeRequest& request) {
  check_request(tokenizer, request);
  check_outputs(request);
  const std::vector<Document> documents = map_documents(request.inputs);
  const Splits splits = split_documents(documents, request.val_fraction);
  if (splits.train.empty()) {
    throw DataError(cat("the ", documents.size(), " texts have no bytes to train on (the first is ",
                        documents[0].path, "). Fix: name texts that are not empty"));
  }
  Progress progress;
  TokenizeResult result;
  for (const Document& document : documents) {
    progress.total += document.map.size();
    result.sources.push_back({document.path, document.map.size(), sha256_hex(document.text())});
  }
  try {
    create_directories(request.output_dir);
    result.splits.push_back(write_split(tokenizer, request, "train", splits.train, progress));
    if (!splits.val.empty()) {
      result.splits.push_back(write_split(tokenizer, request, "val", splits.val, progress));
    } else if (request.may_overwrite) {
      remove_file(join_path(request.output_dir, "val.bin"));  // of another text: never mixed in
    }
    write_file_durably(join_path(request.output_dir, kTokenManifestName),
                       token_manifest_text(tokenizer, request, result), "shard");
  } catch (const FileError& error) {
    throw DataError(cat("token files cannot be written: ", error.what(),
                        ". Fix: make room or permissions, or another --output"));
  }
  return result;
}

}  // namespace assay::data
