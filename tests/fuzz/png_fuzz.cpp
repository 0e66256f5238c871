// PNG files.
#include <cstring>

#include <zlib.h>

#include "base/error.h"
#include "data/image_file.h"
#include "tests/data/golden_images.h"
#include "tests/fuzz/fuzz_driver.h"

namespace assay::fuzz {
namespace {

constexpr size_t kFirstChunk = 8;

uint32_t number_at(const std::string& input, size_t place) {
  uint32_t number = 0;
  for (size_t i = 0; i < 4; ++i) {
    number = number << 8 | static_cast<unsigned char>(input[place + i]);
  }
  return number;
}

void run(const std::string& input) {
  const auto image = data::open_image_file(input, "fuzz", data::JpegScale::kExact);
  const data::ImageSize size = image->size();
  if (size.width * size.height > (int64_t{1} << 20)) return;  // slow, not wrong
  data::DecodedRegion region;
  image->decode(
      {size.width / 3, size.height / 3, size.width - size.width / 3, size.height - size.height / 3},
      {16, 16}, region);
}

void put_number(std::string& input, size_t place, uint32_t number) {
  for (size_t i = 0; i < 4; ++i) input[place + i] = static_cast<char>(number >> (8 * (3 - i)));
}

// Pixels that unpack, made of the packed ones; every byte may stand at the start of a row, where it
// says which of five filters the row has.
std::string packed_pixels(const std::string& body) {
  constexpr size_t kEnough = 16384;  // of the largest seed 29 rows of 297 bytes
  std::string pixels;
  while (pixels.size() < kEnough) pixels += body.empty() ? "\2" : body;
  for (char& byte : pixels) byte = static_cast<char>(static_cast<unsigned char>(byte) % 5);
  uLongf count = compressBound(pixels.size());
  std::string packed(count, '\0');
  compress(reinterpret_cast<Bytef*>(packed.data()), &count,
           reinterpret_cast<const Bytef*>(pixels.data()), pixels.size());
  packed.resize(count);
  return packed;
}

// Makes what is packed and the checksum of every chunk fit.
void repair(std::string& input) {
  for (size_t place = kFirstChunk; place + 12 <= input.size();) {
    size_t length = number_at(input, place);
    if (length > input.size() - place - 12) return;
    if (input.compare(place + 4, 4, "IDAT") == 0) {
      const std::string packed = packed_pixels(input.substr(place + 8, length));
      input.replace(place + 8, length, packed);
      length = packed.size();
      put_number(input, place, static_cast<uint32_t>(length));
    }
    const auto* name = reinterpret_cast<const Bytef*>(input.data() + place + 4);
    const uLong checksum = crc32(0, name, static_cast<uInt>(length + 4));
    put_number(input, place + 8 + length, static_cast<uint32_t>(checksum));
    place += length + 12;
  }
}

}  // namespace
}  // namespace assay::fuzz

int main(int count, char** words) {
  assay::fuzz::Target target;
  target.run = assay::fuzz::run;
  target.repair = assay::fuzz::repair;
  for (const char* name :
       {"png_gray", "png_gray_1", "png_gray_alpha", "png_palette", "png_palette_transparent",
        "png_rgb_transparent", "png_gray_16", "png_rgba_16", "png_interlaced"}) {
    target.seeds.push_back(assay::data::golden_image("small", name));
  }
  target.dictionary = {"IHDR", "IDAT", "IEND", "PLTE", "tRNS", "gAMA", "iCCP", "zTXt", "eXIf"};
  return assay::fuzz::run_target(target, count, words);
}
