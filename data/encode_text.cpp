#include "data/encode_text.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <string>
#include <thread>

namespace assay::data {
namespace {

constexpr size_t kPartBytes = size_t{1} << 20;
constexpr size_t kPartsPerThread = 4;

struct Part {
  size_t begin = 0;
  size_t end = 0;
};

std::vector<Part> parts_of(std::string_view text) {
  std::vector<Part> parts;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = safe_cut(text, begin + std::min(kPartBytes, text.size() - begin));
    parts.push_back({begin, end});
    begin = end;
  }
  return parts;
}

// The parts between being asked for and being taken. Thread-safe.
class PartRing {
 public:
  struct Result {
    std::vector<uint16_t> ids;
    std::exception_ptr error;
    bool is_ready = false;
  };

  PartRing(size_t num_parts, size_t places) : num_parts_(num_parts), ring_(places) {}

  // The next part to encode; num_parts when there is none left. Blocks while the ring is full.
  size_t claim() {
    std::unique_lock lock(mutex_);
    has_room_.wait(lock, [this] {
      return is_stopped_ || num_claimed_ == num_parts_ || num_claimed_ < num_taken_ + ring_.size();
    });
    return is_stopped_ ? num_parts_ : num_claimed_ == num_parts_ ? num_parts_ : num_claimed_++;
  }

  void put(size_t part, Result result) {
    result.is_ready = true;
    {
      const std::lock_guard lock(mutex_);
      ring_[part % ring_.size()] = std::move(result);
    }
    is_ready_.notify_one();
  }

  // Of the next part in order; rethrows its error.
  std::vector<uint16_t> take() {
    std::unique_lock lock(mutex_);
    Result& place = ring_[num_taken_ % ring_.size()];
    is_ready_.wait(lock, [&place] { return place.is_ready; });
    Result result = std::move(place);
    place = Result{};
    ++num_taken_;
    lock.unlock();
    has_room_.notify_all();
    if (result.error) std::rethrow_exception(result.error);
    return std::move(result.ids);
  }

  void stop() {
    {
      const std::lock_guard lock(mutex_);
      is_stopped_ = true;
    }
    has_room_.notify_all();
  }

 private:
  const size_t num_parts_;
  std::mutex mutex_;
  std::condition_variable has_room_;
  std::condition_variable is_ready_;
  std::vector<Result> ring_;  // guarded by mutex_
  size_t num_claimed_ = 0;    // guarded by mutex_
  size_t num_taken_ = 0;      // guarded by mutex_
  bool is_stopped_ = false;   // guarded by mutex_
};

// Stops the threads before they are joined, also when taking throws.
class StopAtEnd {
 public:
  explicit StopAtEnd(PartRing& ring) : ring_(ring) {}
  ~StopAtEnd() { ring_.stop(); }
  StopAtEnd(const StopAtEnd&) = delete;
  StopAtEnd& operator=(const StopAtEnd&) = delete;

 private:
  PartRing& ring_;
};

}  // namespace

void encode_text(const Tokenizer& tokenizer, std::string_view text, int64_t num_threads,
                 const EncodeCalls& calls) {
  const std::vector<Part> parts = parts_of(text);
  const size_t threads = std::min(static_cast<size_t>(std::max<int64_t>(num_threads, 1)),
                                  std::max<size_t>(parts.size(), 1));
  PartRing ring(parts.size(), threads * kPartsPerThread);
  const auto work = [&] {
    std::unique_ptr<Encoder> encoder;
    std::string buffer;
    for (size_t part = ring.claim(); part < parts.size(); part = ring.claim()) {
      PartRing::Result result;
      try {
        if (!encoder) encoder = tokenizer.make_encoder();
        const size_t begin = parts[part].begin;
        std::string_view piece = text.substr(begin, parts[part].end - begin);
        if (calls.prepare) piece = calls.prepare(piece, begin, buffer);
        result.ids.reserve(piece.size() / 3);
        encoder->encode(piece, result.ids);
      } catch (...) {  // thread boundary: take() rethrows it
        result.error = std::current_exception();
      }
      ring.put(part, std::move(result));
    }
  };
  std::vector<std::jthread> workers;
  const StopAtEnd stop(ring);  // goes before the workers are joined
  for (size_t i = 0; i < threads; ++i) workers.emplace_back(work);
  for (const Part& part : parts) {
    const std::vector<uint16_t> ids = ring.take();
    calls.take(ids, part.end - part.begin);
  }
}

}  // namespace assay::data
