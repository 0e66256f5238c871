#include "tests/fuzz/fuzz_driver.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>

#include "base/error.h"
#include "base/text.h"

namespace assay::fuzz {
namespace {

constexpr size_t kMostBytes = size_t{1} << 16;  // of a mutated input

void change_number(std::string& input, Random& random) {
  constexpr auto kEdges = std::to_array<uint64_t>({0,
                                                   1,
                                                   2,
                                                   7,
                                                   8,
                                                   63,
                                                   64,
                                                   127,
                                                   128,
                                                   255,
                                                   256,
                                                   4095,
                                                   4096,
                                                   0x7FFF,
                                                   0x8000,
                                                   0xFFFF,
                                                   0x10000,
                                                   0x7FFFFFFF,
                                                   0x80000000,
                                                   0xFFFFFFFF,
                                                   0x100000000,
                                                   0x7FFFFFFFFFFFFFFF,
                                                   0x8000000000000000,
                                                   0xFFFFFFFFFFFFFFFF,
                                                   0xFFFFFFFFFFFFFFC0});
  const uint64_t value = kEdges[random.below(kEdges.size())];
  const size_t width = size_t{1} << random.below(4);
  if (input.size() < width) return;
  std::memcpy(input.data() + random.below(input.size() - width + 1), &value, width);
}

void change_part(std::string& input, Random& random) {
  if (input.empty()) return;
  const size_t begin = random.below(input.size());
  const size_t length = 1 + random.below(std::min<size_t>(input.size() - begin, 600));
  const std::string part = input.substr(begin, length);
  switch (random.below(4)) {
    case 0:
      input.erase(begin, length);
      break;
    case 1:
      input.insert(random.below(input.size() + 1), part);
      break;
    case 2:
      input.resize(begin);
      break;
    default: {
      const size_t to = random.below(input.size());
      input.replace(to, std::min(length, input.size() - to), part);
    }
  }
}

void change_once(std::string& input, const std::vector<std::string>& dictionary, Random& random) {
  const size_t choice = random.below(dictionary.empty() ? 6 : 8);
  if (choice >= 6) {
    const std::string& word = dictionary[random.below(dictionary.size())];
    const size_t place = random.below(input.size() + 1);
    input.replace(place, choice == 6 ? 0 : std::min(word.size(), input.size() - place), word);
  } else if (choice >= 4) {
    change_part(input, random);
  } else if (choice >= 2) {
    change_number(input, random);
  } else if (!input.empty()) {
    char& byte = input[random.below(input.size())];
    byte = choice == 0 ? static_cast<char>(byte ^ (1 << random.below(8)))
                       : static_cast<char>(random.below(256));
  }
}

// False if the target failed.
bool run_once(const Target& target, const std::string& input, const std::string& what) {
  std::string failure;
  try {
    target.run(input);
    return true;
  } catch (const InternalError& error) {  // a bug by its own word
    failure = error.what();
  } catch (const Error&) {
    return true;  // refused
  } catch (const std::exception& error) {
    failure = error.what();
  }
  const std::string path = cat("fuzz-failure-", what, ".bin");
  std::ofstream(path, std::ios::binary) << input;
  std::fprintf(stderr, "input %s: %s (written to %s)\n", what.c_str(), failure.c_str(),
               path.c_str());
  return false;
}

uint64_t number_of(int count, char** words, int index, uint64_t otherwise) {
  if (index >= count) return otherwise;
  const std::optional<uint64_t> value = parse_uint64(words[index]);
  if (value) return *value;
  std::fprintf(stderr, "%s is no whole number\n", quoted(words[index]).c_str());
  std::exit(2);
}

}  // namespace

uint64_t Random::next() {
  uint64_t value = state_ += 0x9e3779b97f4a7c15ULL;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31);
}

std::string mutated(std::string input, const std::vector<std::string>& dictionary, Random& random) {
  for (size_t left = 1 + random.below(8); left > 0; --left) change_once(input, dictionary, random);
  if (input.size() > kMostBytes) input.resize(kMostBytes);
  return input;
}

int run_target(const Target& target, int count, char** words) {
  const uint64_t executions = number_of(count, words, 1, 2000);
  const uint64_t seed = number_of(count, words, 2, 1);
  const uint64_t first = number_of(count, words, 3, 0);
  for (const std::string& good : target.seeds) {
    try {
      target.run(good);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "a well-formed input was refused: %s\n", error.what());
      return 1;
    }
  }
  for (uint64_t i = first; i < first + executions; ++i) {
    Random random(seed * 1'000'000'007 + i);  // each input on its own, so that one can be repeated
    std::string input =
        mutated(target.seeds[random.below(target.seeds.size())], target.dictionary, random);
    if (target.repair && i % 2 == 0) target.repair(input);
    if (!run_once(target, input, cat(seed, "-", i))) return 1;
  }
  std::printf("%llu inputs, seed %llu: every one was read or refused\n",
              static_cast<unsigned long long>(executions), static_cast<unsigned long long>(seed));
  return 0;
}

}  // namespace assay::fuzz
