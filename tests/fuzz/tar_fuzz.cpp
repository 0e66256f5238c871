// Tar archives and WebDataset samples in them.
#include <cstring>

#include "base/error.h"
#include "data/tar_samples.h"
#include "tests/data/tar_files.h"
#include "tests/fuzz/fuzz_driver.h"

namespace assay::fuzz {
namespace {

void run(const std::string& input) {
  const data::TarSource source{"fuzz.tar", input.size(),
                               [&input](uint64_t offset, std::span<unsigned char> into) {
                                 if (offset > input.size() || into.size() > input.size() - offset) {
                                   throw InternalError("asked for bytes beyond the end");
                                 }
                                 std::memcpy(into.data(), input.data() + offset, into.size());
                               }};
  for (const data::TarSample& sample : data::tar_samples(source)) {
    if (sample.offset > input.size() || sample.bytes > input.size() - sample.offset) {
      throw InternalError("a sample lies beyond the end");
    }
    if (sample.label < 0 || sample.name.empty()) throw InternalError("a sample is not whole");
  }
}

// Each block that says it is a header gets a checksum that fits.
void repair(std::string& input) {
  for (size_t place = 0; place + 512 <= input.size(); place += 512) {
    std::string header = input.substr(place, 512);
    if (header.substr(257, 5) != "ustar") continue;
    data::sign_header(header);
    input.replace(place, 512, header);
  }
}

}  // namespace
}  // namespace assay::fuzz

int main(int count, char** words) {
  using assay::data::pax_record;
  using assay::data::tar_end;
  using assay::data::tar_member;
  assay::fuzz::Target target;
  target.run = assay::fuzz::run;
  target.repair = assay::fuzz::repair;
  target.seeds = {
      assay::data::tar_shard(0, 3),
      tar_member("p", pax_record("path", "a/k.jpg") + pax_record("size", "3"), 'x') +
          tar_member("short", "123") + tar_member("a/k.json", R"({"label": 5})") + tar_end(),
      tar_member("././@LongLink", std::string(120, 'n') + ".png", 'L') + tar_member("x", "1") +
          tar_member("folder/", "", '5') + tar_member(std::string(90, 'm') + ".txt", "1") +
          tar_member("././@LongLink", std::string(120, 'n') + ".cls", 'L') + tar_member("x", "1") +
          tar_end()};
  target.dictionary = {"ustar",
                       "../",
                       "/",
                       "path=",
                       "size=",
                       "99 ",
                       ".jpg",
                       ".cls",
                       ".json",
                       std::string(512, '\0'),
                       std::string("\x80\0\0\0\xff\xff\xff\xff", 8)};
  return assay::fuzz::run_target(target, count, words);
}
