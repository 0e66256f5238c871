#include "data/file_reader.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

#include "base/error.h"
#include "base/text.h"

namespace assay::data {

FileReader::FileReader(std::string path)
    : path_(std::move(path)), descriptor_(::open(path_.c_str(), O_RDONLY | O_CLOEXEC)) {
  if (descriptor_ < 0) {
    throw DataError(cat("cannot open data file ", path_, ": ", std::strerror(errno),
                        ". Fix: check --data_dir and the file"));
  }
}

FileReader::~FileReader() { ::close(descriptor_); }

void FileReader::read_at(uint64_t offset, std::span<unsigned char> into) const {
  size_t done = 0;
  while (done < into.size()) {
    const ssize_t count = ::pread(descriptor_, into.data() + done, into.size() - done,
                                  static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      throw DataError(cat("cannot read ", into.size(), " bytes at byte ", offset, " of ", path_,
                          ": ", count < 0 ? std::strerror(errno) : "the file ends before",
                          ". Fix: check the disk, or copy the file again"));
    }
    done += static_cast<size_t>(count);
  }
}

}  // namespace assay::data
