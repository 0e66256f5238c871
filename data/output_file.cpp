#include "data/output_file.h"

#include <array>
#include <random>

#include "base/text.h"

namespace assay::data {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 20;

std::string temporary_beside(const std::string& path) {
  constexpr size_t kMostNameBytes = 255 - std::string_view("..tmp-0123456789abcdef").size();
  std::random_device device;
  std::array<unsigned char, 8> bytes;
  for (unsigned char& byte : bytes) byte = static_cast<unsigned char>(device());
  return join_path(parent_path(path),
                   cat(".", file_name(path).substr(0, kMostNameBytes), ".tmp-", hex_encode(bytes)));
}

}  // namespace

OutputFile::OutputFile(std::string path)
    : path_(std::move(path)),
      temporary_(temporary_beside(path_)),
      writer_(std::make_unique<FileWriter>(temporary_, "shard")) {
  pending_.reserve(kBufferBytes);
}

OutputFile::~OutputFile() {
  writer_.reset();
  if (is_committed_) return;
  try {
    remove_file(temporary_);
  } catch (const FileError&) {  // the error that brought us here says more
  }
}

void OutputFile::write(const void* bytes, size_t count) {
  written_ += count;
  if (pending_.size() + count > kBufferBytes) flush();
  if (count >= kBufferBytes) {
    writer_->write(bytes, count);
  } else {
    pending_.append(static_cast<const char*>(bytes), count);
  }
}

void OutputFile::flush() {
  writer_->write(pending_);
  pending_.clear();
}

void OutputFile::commit(std::string_view start) {
  flush();
  if (!start.empty()) writer_->overwrite_start(start);
  writer_->sync();
  writer_->close();
  rename_path(temporary_, path_, "shard.rename");
  is_committed_ = true;
  sync_directory(parent_path(path_), "shard.sync_parent");
}

}  // namespace assay::data
