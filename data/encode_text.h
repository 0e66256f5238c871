// One long text through a tokenizer on several threads, in order.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "data/tokenizer.h"

namespace assay::data {

// Cuts the text where no token changes, encodes the parts on `num_threads` threads and hands their
// ids to `take` in order, on the calling thread. At most 4 parts of about 1 MiB a thread are held.
// `prepare`, if given, makes the text of a part ready on its thread and may throw; `offset` is the
// part's place. Errors of the threads are thrown here, those of the first part first.
struct EncodeCalls {
  // Returns the text to encode; may put a new one into `buffer`.
  std::function<std::string_view(std::string_view part, size_t offset, std::string& buffer)>
      prepare = {};
  std::function<void(std::span<const uint16_t> ids, size_t text_bytes)> take;
};
void encode_text(const Tokenizer& tokenizer, std::string_view text, int64_t num_threads,
                 const EncodeCalls& calls);

}  // namespace assay::data
