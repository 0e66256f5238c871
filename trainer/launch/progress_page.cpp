#include "trainer/launch/progress_page.h"

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <utility>

#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"

namespace assay::launch {

// Shared between processes of the same build: lock-free atomics only.
struct ProgressPage::Layout {
  static constexpr uint64_t kMagic = 0x3250474152595341;  // "ASYRAGP2"
  uint64_t magic = kMagic;
  std::atomic<int64_t> step{0};
  std::atomic<int32_t> phase{0};
  std::atomic<double> heartbeat_seconds{0};
  std::atomic<double> longest_save_seconds{0};
  std::atomic<bool> is_writing{false};
  std::atomic<int64_t> blamed_rank{-1};
};

std::string_view phase_name(RankPhase phase) {
  constexpr std::string_view kNames[] = {"starting",   "joining",    "loading", "data_wait",
                                         "forward",    "backward",   "comm",    "optimizer",
                                         "evaluation", "checkpoint", "ending"};
  const auto index = static_cast<size_t>(phase);
  return index < std::size(kNames) ? kNames[index] : "unknown";
}

ProgressPage ProgressPage::map(int fd) {
  void* address = mmap(nullptr, sizeof(Layout), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (address == MAP_FAILED) {
    throw LaunchError(cat("cannot map the progress page: ", std::strerror(errno)));
  }
  return ProgressPage(fd, static_cast<Layout*>(address));
}

ProgressPage ProgressPage::create() {
  const int fd = memfd_create("assay-progress", MFD_CLOEXEC);
  if (fd < 0 || ftruncate(fd, sizeof(Layout)) != 0) {
    const int error = errno;
    if (fd >= 0) close(fd);
    throw LaunchError(cat("cannot make the progress page: ", std::strerror(error)));
  }
  ProgressPage page = map(fd);
  new (page.layout_) Layout;
  return page;
}

ProgressPage ProgressPage::from_environment() {
  static_assert(std::atomic<double>::is_always_lock_free &&
                std::atomic<int64_t>::is_always_lock_free);
  const char* text = std::getenv(kProgressVariable);
  if (text == nullptr || *text == '\0') return create();
  const auto fd = parse_int64(text);
  struct stat status {};
  if (!fd || *fd < 3 || *fd > 1 << 20 || fstat(static_cast<int>(*fd), &status) != 0 ||
      status.st_size != static_cast<off_t>(sizeof(Layout))) {
    throw LaunchError(
        cat("environment variable ", kProgressVariable, " is ", quoted(text),
            ", must be the descriptor of a page that assay launch made. Fix: unset it"));
  }
  ProgressPage page = map(static_cast<int>(*fd));
  if (page.layout_->magic != Layout::kMagic) {
    throw LaunchError(cat("environment variable ", kProgressVariable, " is ", quoted(text),
                          ", which is no progress page. Fix: unset it"));
  }
  return page;
}

ProgressPage::ProgressPage(ProgressPage&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), layout_(std::exchange(other.layout_, nullptr)) {}

ProgressPage::~ProgressPage() {
  if (layout_ != nullptr) munmap(layout_, sizeof(Layout));
  if (fd_ >= 0) close(fd_);
}

void ProgressPage::set_phase(RankPhase phase) {
  layout_->phase.store(static_cast<int32_t>(phase), std::memory_order_relaxed);
  beat();
}

void ProgressPage::finish_step(int64_t step) {
  layout_->step.store(step, std::memory_order_relaxed);
  beat();
}

void ProgressPage::beat() {
  layout_->heartbeat_seconds.store(monotonic_seconds(), std::memory_order_relaxed);
}

void ProgressPage::note_save(double seconds) {
  if (seconds > layout_->longest_save_seconds.load(std::memory_order_relaxed)) {
    layout_->longest_save_seconds.store(seconds, std::memory_order_relaxed);
  }
}

void ProgressPage::set_writing(bool is_writing) {
  layout_->is_writing.store(is_writing, std::memory_order_relaxed);
}

void ProgressPage::blame(int64_t rank) {
  layout_->blamed_rank.store(rank, std::memory_order_relaxed);
}

RankProgress ProgressPage::read() const {
  RankProgress progress;
  progress.step = layout_->step.load(std::memory_order_relaxed);
  progress.phase = static_cast<RankPhase>(layout_->phase.load(std::memory_order_relaxed));
  progress.heartbeat_seconds = layout_->heartbeat_seconds.load(std::memory_order_relaxed);
  progress.longest_save_seconds = layout_->longest_save_seconds.load(std::memory_order_relaxed);
  progress.is_writing = layout_->is_writing.load(std::memory_order_relaxed);
  progress.blamed_rank = layout_->blamed_rank.load(std::memory_order_relaxed);
  return progress;
}

}  // namespace assay::launch
