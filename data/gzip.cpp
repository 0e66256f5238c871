#include "data/gzip.h"

#include <algorithm>
#include <limits>

#include <zlib.h>

#include "base/error.h"
#include "base/text.h"

namespace assay::data {
namespace {

// Owns zlib's state; one object a file.
class Inflater {
 public:
  Inflater() {
    // 15: the largest window; + 16: gzip wrapping only, so that raw zlib data are refused.
    if (inflateInit2(&stream_, 15 + 16) != Z_OK) throw InternalError("zlib does not start");
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  z_stream& stream() { return stream_; }

 private:
  z_stream stream_{};
};

constexpr size_t kChunkBytes = size_t{1} << 20;

[[noreturn]] void fail(const std::string& path, const std::string& what, const z_stream& stream) {
  throw DataError(cat("cannot unpack ", path, ": ", what, " at packed byte ", stream.total_in, " (",
                      stream.total_out, " bytes unpacked). Fix: fetch or copy the file again"));
}

}  // namespace

bool is_gzip(std::string_view bytes) {
  return bytes.size() >= 2 && bytes[0] == '\x1f' && bytes[1] == '\x8b';
}

std::string gunzip(std::string_view packed, const std::string& path, uint64_t limit) {
  Inflater inflater;
  z_stream& stream = inflater.stream();
  std::string out;
  size_t used = 0;      // of packed
  size_t produced = 0;  // of out
  while (produced < limit) {
    const size_t room = std::min<uint64_t>(kChunkBytes, limit - produced);
    if (out.size() < produced + room) out.resize(std::min<uint64_t>(limit, 2 * produced + room));
    const size_t give = std::min<size_t>(packed.size() - used, std::numeric_limits<uInt>::max());
    const size_t take = std::min<size_t>(out.size() - produced, std::numeric_limits<uInt>::max());
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data() + used));
    stream.avail_in = static_cast<uInt>(give);
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + produced);
    stream.avail_out = static_cast<uInt>(take);
    const int code = inflate(&stream, Z_NO_FLUSH);
    used += give - stream.avail_in;
    produced += take - stream.avail_out;
    if (code == Z_STREAM_END) {
      if (used == packed.size()) break;
      if (!is_gzip(packed.substr(used))) fail(path, "bytes that are not gzip follow", stream);
      inflateReset(&stream);  // the next member
    } else if (code == Z_BUF_ERROR ||
               (code == Z_OK && used == packed.size() && stream.avail_out > 0)) {
      fail(path, "the file ends early", stream);
    } else if (code != Z_OK) {
      fail(path, stream.msg != nullptr ? stream.msg : "broken gzip data", stream);
    }
  }
  out.resize(produced);
  return out;
}

}  // namespace assay::data
