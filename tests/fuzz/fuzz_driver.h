// Runs a parser on mutated inputs. A target may refuse an input with an error of ours; anything
// else it throws, and whatever a sanitizer finds, is a failure, and the input is written out.
//
//   <target> [executions=2000] [seed=1] [first=0]      the last number repeats a single failure
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace assay::fuzz {

// SplitMix64: the same inputs everywhere for the same seed.
class Random {
 public:
  explicit Random(uint64_t state) : state_(state) {}
  uint64_t next();
  size_t below(size_t bound) { return bound == 0 ? 0 : static_cast<size_t>(next() % bound); }

 private:
  uint64_t state_;
};

// One to eight changes: bits, bytes, numbers at the edges of their ranges, parts copied, removed,
// repeated, cut off, words of the dictionary.
std::string mutated(std::string input, const std::vector<std::string>& dictionary, Random& random);

struct Target {
  std::vector<std::string> seeds;  // well-formed inputs; the target must accept each of them
  std::vector<std::string> dictionary = {};
  std::function<void(const std::string& input)> run;
  // Makes checksums fit again, so that mutations reach what lies behind them; used on every other
  // input. May be empty.
  std::function<void(std::string& input)> repair = {};
};

int run_target(const Target& target, int count, char** words);

}  // namespace assay::fuzz
