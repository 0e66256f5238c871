// Headers of token files.
#include "base/error.h"
#include "data/token_file.h"
#include "tests/data/token_files.h"
#include "tests/fuzz/fuzz_driver.h"

namespace assay::fuzz {
namespace {

void check(const std::string& input, std::optional<int64_t> bits) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(input.data());
  const data::TokenLayout layout =
      data::token_layout({bytes, input.size()}, input.size(), "fuzz.bin", bits);
  const auto size = static_cast<int64_t>(input.size());
  if (layout.count < 0 || layout.header_bytes + layout.count * layout.token_bytes != size) {
    throw InternalError("the layout does not fit the file");
  }
}

void run(const std::string& input) {
  check(input, {});
  check(input, 16);
}

}  // namespace
}  // namespace assay::fuzz

int main(int count, char** words) {
  using assay::data::llmc_header;
  using assay::data::token_bytes;
  assay::fuzz::Target target;
  target.run = assay::fuzz::run;
  target.seeds = {llmc_header(20240520, 1, 4) + token_bytes<uint16_t>({1, 2, 3, 4}),
                  token_bytes<uint16_t>({5, 6, 7, 8, 60000})};
  const std::string narrow = llmc_header(20240520, 1, 0);
  const std::string wide = llmc_header(20240801, 7, 0);
  target.dictionary = {narrow.substr(0, 4), wide.substr(0, 4), narrow.substr(0, 8), "\x93NUMPY"};
  return assay::fuzz::run_target(target, count, words);
}
