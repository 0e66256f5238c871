// When and how a run is killed: the words of a suite's kill lists.
//
//   random_step                 SIGKILL once a step chosen at random is finished
//   random_wall                 SIGKILL at a random moment of the control run's wall time
//   checkpoint.rename:2         SIGKILL by the fault point's second hit
//   after_resume:train.forward  killed at a random step first; the resumed run is then killed too
//   sigterm                     SIGTERM at a random step: must save and end with 143
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace assay::harness {

enum class KillKind { kRandomStep, kRandomWall, kFaultPoint, kSigterm };

struct Kill {
  std::string name;  // as written
  KillKind kind = KillKind::kRandomStep;
  bool is_after_resume = false;  // a random_step kill comes before it
  std::string fault_point;       // kFaultPoint only
  int64_t fault_hit = 1;
};

// Throws ConfigError for an unknown word or fault point, with the nearest spelling.
Kill parse_kill(std::string_view word);

// "checkpoint.rename:2=kill", for ASSAY_FAULTS.
std::string fault_text(const Kill& kill);

// Moments chosen from a seed, the kill's name and the trial's workload, so that a suite kills at
// the same places each time and another seed at others (splitmix64).
class KillClock {
 public:
  KillClock(uint64_t seed, std::string_view workload, std::string_view kill);
  int64_t step(int64_t low, int64_t high);  // in [low, high]
  double fraction();                        // in [0, 1)

 private:
  uint64_t next();
  uint64_t state_;
};

}  // namespace assay::harness
