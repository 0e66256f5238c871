#include "data/idx.h"

#include <algorithm>

#include "base/digest.h"
#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "data/gzip.h"
#include "data/sources.h"

namespace assay::data {
namespace {

constexpr uint32_t kImageMagic = 0x00000803;  // unsigned byte, 3 dimensions
constexpr uint32_t kLabelMagic = 0x00000801;  // unsigned byte, 1 dimension

uint32_t big_endian(std::string_view bytes, size_t offset) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(bytes[offset + i]);
  return value;
}

uint32_t magic_of(IdxKind kind) { return kind == IdxKind::kImages ? kImageMagic : kLabelMagic; }

std::string kind_text(IdxKind kind) {
  return cat("an IDX ", kind == IdxKind::kImages ? "image" : "label", " file (magic ",
             magic_of(kind), ")");
}

size_t header_bytes_of(IdxKind kind) { return kind == IdxKind::kImages ? 16 : 8; }

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text;
  for (const int64_t size : shape) text += cat(text.empty() ? "" : " x ", size);
  return text;
}

// Header plus one byte an element; nothing if that overflows.
bool content_bytes(const std::vector<int64_t>& shape, size_t header_bytes, uint64_t* bytes) {
  *bytes = 1;
  for (const int64_t size : shape) {
    if (__builtin_mul_overflow(*bytes, static_cast<uint64_t>(size), bytes)) return false;
  }
  return !__builtin_add_overflow(*bytes, header_bytes, bytes);
}

struct Header {
  std::vector<int64_t> shape;
  uint64_t expected_bytes = 0;  // of the whole file
};

std::vector<int64_t> read_shape(std::string_view content, IdxKind kind, bool is_swapped) {
  std::vector<int64_t> shape;
  for (size_t offset = 4; offset < header_bytes_of(kind); offset += 4) {
    const uint32_t size = big_endian(content, offset);
    shape.push_back(is_swapped ? __builtin_bswap32(size) : size);
  }
  return shape;
}

[[noreturn]] void refuse_byte_order(std::string_view content, const std::string& origin,
                                    IdxKind kind) {
  throw DataError(cat(origin, " has sizes in the wrong byte order (little-endian): read as ",
                      shape_text(read_shape(content, kind, false)), ", must be ",
                      shape_text(read_shape(content, kind, true)),
                      " in big-endian. Fix: write the header big-endian"));
}

Header parse_header(std::string_view content, const std::string& origin, IdxKind kind) {
  const size_t header_bytes = header_bytes_of(kind);
  if (content.size() >= 4 && big_endian(content, 0) != magic_of(kind)) {
    throw DataError(cat(origin, " is ", idx_appearance(content), ", must be ", kind_text(kind),
                        ". Fix: put the right file there, unpacked or with a name ending in .gz"));
  }
  if (content.size() < header_bytes) {
    throw DataError(cat(origin, " has ", content.size(), " bytes, the header of ", kind_text(kind),
                        " alone has ", header_bytes, ". Fix: fetch or copy the file again"));
  }
  Header header;
  header.shape = read_shape(content, kind, false);
  if (std::count(header.shape.begin(), header.shape.end(), 0) > 0) {
    throw DataError(cat(origin, " holds ", shape_text(header.shape),
                        kind == IdxKind::kImages ? " images (N x H x W)" : " labels",
                        ", every size must be >= 1. Fix: fetch or copy the file again"));
  }
  if (!content_bytes(header.shape, header_bytes, &header.expected_bytes)) {
    constexpr uint64_t kPlausibleBytes = uint64_t{1} << 40;
    uint64_t swapped_bytes = 0;
    if (content_bytes(read_shape(content, kind, true), header_bytes, &swapped_bytes) &&
        swapped_bytes < kPlausibleBytes) {
      refuse_byte_order(content, origin, kind);
    }
    throw DataError(cat(origin, " has a header of ", shape_text(header.shape),
                        " elements, more than 64 bits can count. Fix: fetch the file again"));
  }
  return header;
}

void check_size(std::string_view content, const std::string& origin, IdxKind kind,
                const Header& header) {
  if (content.size() == header.expected_bytes) return;
  uint64_t swapped_bytes = 0;
  if (content_bytes(read_shape(content, kind, true), header_bytes_of(kind), &swapped_bytes) &&
      swapped_bytes == content.size()) {
    refuse_byte_order(content, origin, kind);
  }
  const bool is_short = content.size() < header.expected_bytes;
  throw DataError(cat(origin, " is ", is_short ? "truncated: it has " : "too long: it has ",
                      content.size(), " bytes, its header of ", shape_text(header.shape),
                      " elements needs ", header.expected_bytes,
                      ". Fix: fetch or copy the file again"));
}

std::string unpack(const std::string& packed, const std::string& path, IdxKind kind) {
  if (!is_gzip(packed)) {
    throw DataError(cat(path, " is ", idx_appearance(packed),
                        ", must be a gzip file as its name says. Fix: drop .gz from its name, or "
                        "fetch the file again"));
  }
  // The header first: it bounds what the rest may unpack to.
  const Header header = parse_header(gunzip(packed, path, header_bytes_of(kind)), path, kind);
  return gunzip(packed, path, header.expected_bytes + 1);
}

}  // namespace

std::span<const unsigned char> IdxArray::values() const {
  return {reinterpret_cast<const unsigned char*>(content.data()) + header_bytes,
          content.size() - header_bytes};
}

std::string idx_appearance(std::string_view bytes) {
  if (bytes.empty()) return "an empty file";
  if (is_gzip(bytes)) {
    return "a gzip file (magic 1f 8b) under a name without .gz, or packed twice";
  }
  if (bytes.size() < 4) return cat("a file of ", bytes.size(), " bytes");
  const uint32_t magic = big_endian(bytes, 0);
  if (magic == kImageMagic) return kind_text(IdxKind::kImages);
  if (magic == kLabelMagic) return kind_text(IdxKind::kLabels);
  const uint32_t swapped = __builtin_bswap32(magic);
  if (swapped == kImageMagic || swapped == kLabelMagic) {
    return cat("an IDX ", swapped == kImageMagic ? "image" : "label",
               " file in the wrong byte order (little-endian header, magic ", magic, ")");
  }
  if (magic >> 16 == 0) {
    const auto byte = [magic](int shift) {
      const auto value = static_cast<unsigned char>(magic >> shift);
      return hex_encode({&value, 1});
    };
    return cat("an IDX file of element type 0x", byte(8), " and ", magic & 0xff,
               " dimensions (unsigned bytes are type 0x08)");
  }
  return cat("not an IDX file (magic ", magic, ")");
}

IdxArray parse_idx(std::string content, const std::string& origin, IdxKind kind) {
  const Header header = parse_header(content, origin, kind);
  check_size(content, origin, kind, header);
  IdxArray array;
  array.shape = header.shape;
  array.header_bytes = header_bytes_of(kind);
  array.source = {origin, content.size(), sha256_hex(content)};
  array.content = std::move(content);
  return array;
}

IdxArray read_idx_file(const std::string& path, IdxKind kind) {
  std::string content = read_source_file(path);
  if (path.ends_with(".gz")) content = unpack(content, path, kind);
  return parse_idx(std::move(content), path, kind);
}

}  // namespace assay::data
