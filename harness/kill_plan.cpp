#include "harness/kill_plan.h"

#include <algorithm>

#include "base/digest.h"
#include "base/error.h"
#include "base/fault_points.h"
#include "base/text.h"

namespace assay::harness {
namespace {

constexpr std::string_view kAfterResume = "after_resume:";

std::vector<std::string> known_words() {
  std::vector<std::string> words = {"random_step", "random_wall", "sigterm"};
  for (const std::string_view point : known_fault_points()) words.emplace_back(point);
  return words;
}

}  // namespace

Kill parse_kill(std::string_view word) {
  Kill kill;
  kill.name = std::string(word);
  kill.is_after_resume = word.starts_with(kAfterResume);
  if (kill.is_after_resume) word.remove_prefix(kAfterResume.size());
  const size_t colon = word.find(':');
  const std::string place(word.substr(0, colon));
  const std::vector<std::string> known = known_words();
  if (std::find(known.begin(), known.end(), place) == known.end()) {
    const auto near = nearest_spelling(place, known);
    throw ConfigError(cat("kill ", assay::quoted(kill.name), " names ", assay::quoted(place),
                          ", which is no fault point",
                          near ? cat("; did you mean ", assay::quoted(*near), "?") : std::string(),
                          ". Expected: random_step, random_wall, sigterm or POINT[:HIT], also "
                          "after after_resume:"));
  }
  if (colon != std::string_view::npos) {
    const auto hit = parse_int64(word.substr(colon + 1));
    if (!hit || *hit < 1) {
      throw ConfigError(cat("kill ", assay::quoted(kill.name), " has the hit ",
                            assay::quoted(word.substr(colon + 1)), ", must be a number >= 1"));
    }
    kill.fault_hit = *hit;
  }
  if (place == "random_step") {
    kill.kind = KillKind::kRandomStep;
  } else if (place == "random_wall") {
    kill.kind = KillKind::kRandomWall;
  } else if (place == "sigterm") {
    kill.kind = KillKind::kSigterm;
  } else {
    kill.kind = KillKind::kFaultPoint;
    kill.fault_point = place;
  }
  return kill;
}

std::string fault_text(const Kill& kill) {
  return cat(kill.fault_point, ":", kill.fault_hit, "=kill");
}

KillClock::KillClock(uint64_t seed, std::string_view workload, std::string_view kill)
    : state_(seed) {
  const std::string hex = sha256_hex(cat(workload, "/", kill));
  for (const char digit : hex.substr(0, 16)) {
    state_ = state_ * 31 + static_cast<unsigned char>(digit);
  }
}

int64_t KillClock::step(int64_t low, int64_t high) {
  if (high <= low) return low;
  return low + static_cast<int64_t>(next() % static_cast<uint64_t>(high - low + 1));
}

double KillClock::fraction() { return static_cast<double>(next() >> 11) * 0x1p-53; }

// Steele, Lea & Flood 2014, "Fast splittable pseudorandom number generators", fig. 16.
uint64_t KillClock::next() {
  state_ += 0x9e3779b97f4a7c15u;
  uint64_t z = state_;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

}  // namespace assay::harness
