#include "harness/metrics_watch.h"

#include <algorithm>
#include <sys/stat.h>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace assay::harness {
namespace {

// The step of one line; 0 for a line that is no step record (an evaluation, or torn).
int64_t step_of_line(const std::string& line) {
  const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || json.contains("event") || !json.contains("step")) return 0;
  const auto& step = json["step"];
  return step.is_number_integer() ? step.get<int64_t>() : 0;
}

}  // namespace

MetricsWatch::MetricsWatch(std::string path) : path_(std::move(path)) {
  struct stat facts {};
  if (stat(path_.c_str(), &facts) == 0) {
    inode_ = facts.st_ino;
    offset_ = static_cast<uint64_t>(facts.st_size);
  }
}

int64_t MetricsWatch::poll(int64_t at_least) {
  const int descriptor = open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return last_step_;
  struct stat facts {};
  if (fstat(descriptor, &facts) == 0) {
    if (facts.st_ino != inode_ || static_cast<uint64_t>(facts.st_size) < offset_) {
      inode_ = facts.st_ino;
      offset_ = 0;
      partial_.clear();
    }
    std::vector<char> buffer(65536);
    ssize_t got = 0;
    while ((got = pread(descriptor, buffer.data(), buffer.size(), static_cast<off_t>(offset_))) >
           0) {
      partial_.append(buffer.data(), static_cast<size_t>(got));
      offset_ += static_cast<uint64_t>(got);
    }
  }
  close(descriptor);
  size_t start = 0;
  for (size_t end = partial_.find('\n'); end != std::string::npos;
       end = partial_.find('\n', start)) {
    const int64_t step = step_of_line(partial_.substr(start, end - start));
    if (step >= at_least) last_step_ = std::max(last_step_, step);
    start = end + 1;
  }
  partial_.erase(0, start);
  return last_step_;
}

}  // namespace assay::harness
