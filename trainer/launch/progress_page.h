// How far one rank is: a page of memory that a launcher shares with the process it started, so that
// it can say where a rank stood even if that rank was killed. Without a launcher the page is the
// process's own. Torch-free.
#pragma once

#include <cstdint>
#include <string_view>

namespace assay::launch {

// Names the file descriptor of the page for the started process. The page is a memfd: it has no
// name in any file system and is gone with the last process that holds it.
inline constexpr const char* kProgressVariable = "ASSAY_PROGRESS_FD";

// Where a rank is within a step, and before and after all steps. Part of the page's layout.
enum class RankPhase : int32_t {
  kStarting = 0,  // reading settings, opening data
  kJoining = 1,   // finding the other ranks
  kLoading = 2,   // building or restoring the state
  kDataWait = 3,
  kForward = 4,
  kBackward = 5,  // includes the reduction that overlaps with it
  kComm = 6,      // waiting for the other ranks
  kOptimizer = 7,
  kEvaluation = 8,
  kCheckpoint = 9,
  kEnding = 10,
};
std::string_view phase_name(RankPhase phase);  // "data_wait"

struct RankProgress {
  int64_t step = 0;  // last finished step of the run (not of this process)
  RankPhase phase = RankPhase::kStarting;
  double heartbeat_seconds = 0;     // monotonic_seconds() of the last sign of life; 0: none yet
  double longest_save_seconds = 0;  // the longest checkpoint of this process
  bool is_writing = false;          // a checkpoint, right now
  int64_t blamed_rank = -1;         // why this rank ends: that one failed before it; -1: unknown
};

// One writer process, any number of readers; every method is thread-safe and never blocks.
class ProgressPage {
 public:
  // A new page; fd() can be inherited by a child (it is close-on-exec until the caller dups it).
  static ProgressPage create();
  // The page that kProgressVariable names, or a new one where it is not set. Throws LaunchError if
  // the variable does not name a page.
  static ProgressPage from_environment();

  ProgressPage(ProgressPage&& other) noexcept;
  ProgressPage& operator=(ProgressPage&&) = delete;
  ~ProgressPage();

  int fd() const { return fd_; }
  void set_phase(RankPhase phase);  // also a sign of life
  void finish_step(int64_t step);
  void beat();  // sign of life
  void note_save(double seconds);
  void set_writing(bool is_writing);
  void blame(int64_t rank);
  RankProgress read() const;

 private:
  struct Layout;
  ProgressPage(int fd, Layout* layout) : fd_(fd), layout_(layout) {}
  static ProgressPage map(int fd);

  int fd_ = -1;
  Layout* layout_ = nullptr;
};

}  // namespace assay::launch
