// Where the members of a tar archive lie: ustar, pax and GNU long names. Nothing is unpacked, and
// names that leave the archive's folder, links and devices are refused.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace assay::data {

struct TarMember {
  std::string name;     // relative, printable, without "./" in front
  uint64_t offset = 0;  // of the content
  uint64_t bytes = 0;
};

// An archive by its size and a way to fill a span from a place in it (always whole).
struct TarSource {
  std::string path;  // for messages
  uint64_t bytes = 0;
  std::function<void(uint64_t offset, std::span<unsigned char> into)> read_at;
};

// The regular files, in order. Throws DataError naming archive, byte and member: a header whose
// checksum does not fit, a member that reaches beyond the end, an archive that was cut off (no
// block of zeros at its end), a link, device or sparse file, an absolute name, one with "..", or
// one with control characters.
std::vector<TarMember> tar_members(const TarSource& source);

}  // namespace assay::data
