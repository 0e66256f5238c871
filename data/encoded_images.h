// Labelled image files, not decoded: what tar shards, packed shards and folders have in common.
#pragma once

#include <cstdint>
#include <string>

namespace assay::data {

// Thread-safe: several workers call read() at once.
class EncodedImages {
 public:
  virtual ~EncodedImages() = default;
  virtual int64_t size() const = 0;
  virtual int64_t label(int64_t id) const = 0;
  // The bytes of the image file, in place of what `bytes` held. Throws DataError.
  virtual void read(int64_t id, std::string& bytes) const = 0;
  // Where the image comes from, for messages: "train-000.tar: n01440764_10026.jpg".
  virtual std::string origin(int64_t id) const = 0;
};

}  // namespace assay::data
