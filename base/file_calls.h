// System calls on files with EINTR handled, errors thrown, and fault points passed. Internal to
// base.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "base/fault_points.h"

namespace assay {

// Owns an open file descriptor; -1 for none.
class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return value_; }
  int release() { return std::exchange(value_, -1); }

 private:
  int value_;
};

// A signal storm longer than this is reported as EINTR rather than waited out.
inline constexpr int kMaxInterruptions = 1000;

// fault_point(cat(site, step)), and the name is only made when something is armed. A file that no
// fault can reach has an empty site.
FaultOutcome fault_step(std::string_view site, std::string_view step);

// open(2) with O_CLOEXEC and mode 0644; `operation` is the verb of the message.
Descriptor open_descriptor(const std::string& path, int flags, const std::string& operation);
// The same behind the fault point "<site>.open".
Descriptor open_for_writing(const std::string& path, int flags, std::string_view site);

// read(2): the number of bytes taken, 0 at the end.
size_t read_some(const Descriptor& file, void* bytes, size_t limit, const std::string& path);

// write(2) until all is taken; each call passes "<site>.write". `num_written`, if given, is kept
// up to date, so that it tells how far a failed write came.
void write_all(int descriptor, std::string_view bytes, const std::string& path,
               std::string_view site, size_t* num_written = nullptr);
void sync_descriptor(int descriptor, const std::string& path, std::string_view site);
// The descriptor is gone afterwards, also when this throws.
void close_descriptor(int descriptor, const std::string& path, std::string_view site);

}  // namespace assay
