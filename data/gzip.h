// Whole gzip files through zlib.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace assay::data {

// True for the two magic bytes of RFC 1952.
bool is_gzip(std::string_view bytes);

// Unpacks all members of a gzip file, at most `limit` bytes: what a header promised bounds what a
// broken or hostile file can take. Checksums are verified unless the limit cuts the output.
// Throws DataError naming `path`.
std::string gunzip(std::string_view packed, const std::string& path, uint64_t limit);

}  // namespace assay::data
