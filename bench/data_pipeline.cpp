// Images a second of the whole path from JPEG files to the batch: read, decode, RandomResizedCrop
// 224, flip, planes in the slot. Prints JSON lines, exact mode and reduced mode in turns.
//
//   bench_data_pipeline FOLDER [workers=2] [seconds=10] [images=512]
//
// FOLDER gets that many photograph-like JPEG files of 500 x 375, unless it has a train/ already; so
// peers/data_loader.py can measure PyTorch's DataLoader on the same ones. They are read from the
// page cache: this measures the pipeline, not the disk.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <sys/resource.h>
#include <vector>

#include <jpeglib.h>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "data/dataset.h"
#include "data/loader.h"
#include "data/mix64.h"
#include "data/sampler.h"

namespace assay::data {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kWidth = 500;
constexpr int kHeight = 375;
constexpr int kQuality = 90;  // with the noise below about 110 kB, ImageNet's mean
constexpr int64_t kBatchSize = 64;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Slopes, waves and noise, other ones for every seed.
std::vector<unsigned char> picture(uint64_t seed) {
  std::vector<unsigned char> pixels(size_t{kWidth} * kHeight * 3);
  uint64_t state = mix64(seed);
  const double wave = 0.02 + static_cast<double>(state % 100) / 500;
  size_t i = 0;
  for (int y = 0; y < kHeight; ++y) {
    for (int x = 0; x < kWidth; ++x) {
      const double shape = 60 * std::sin(wave * x) * std::cos(wave * y * 0.7) + 0.15 * (x + y);
      for (int c = 0; c < 3; ++c, ++i) {
        const auto noise = static_cast<double>(mix64(state += kMixIncrement) % 40);
        pixels[i] =
            static_cast<unsigned char>(std::clamp(70.0 + shape + noise + 10 * c, 0.0, 255.0));
      }
    }
  }
  return pixels;
}

std::string jpeg_of(std::vector<unsigned char> pixels) {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* bytes = nullptr;
  unsigned long count = 0;
  jpeg_mem_dest(&info, &bytes, &count);
  info.image_width = kWidth;
  info.image_height = kHeight;
  info.input_components = 3;
  info.in_color_space = JCS_RGB;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, kQuality, TRUE);
  jpeg_start_compress(&info, TRUE);
  while (info.next_scanline < info.image_height) {
    unsigned char* row = pixels.data() + size_t{info.next_scanline} * kWidth * 3;
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  std::string file(reinterpret_cast<const char*>(bytes), count);
  jpeg_destroy_compress(&info);
  std::free(bytes);
  return file;
}

void make_files(const std::string& folder, int64_t images) {
  if (is_directory(join_path(folder, "train"))) return;
  for (int64_t i = 0; i < images; ++i) {
    const std::string inner = join_path(folder, cat("train/class", i % 10));
    create_directories(inner);
    FileWriter writer(join_path(inner, cat(i, ".jpg")), "");
    const std::string file = jpeg_of(picture(static_cast<uint64_t>(i)));
    writer.write(file.data(), file.size());
    writer.close();
  }
}

double peak_memory_mb() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

void measure(const std::string& folder, JpegScale scale, int64_t workers, double seconds) {
  DataRequest request;
  request.name = "image_folder";
  request.directory = folder;
  request.image_shape = {3, 224, 224};
  request.jpeg_scale = scale;
  const OpenedData data = open_data(request);
  const Sampler sampler({.dataset_size = data.train->size(),
                         .micro_batch_size = kBatchSize,
                         .seed = 1,
                         .drop_last = true});
  DataLoader loader(*data.train, sampler, {.num_workers = workers, .prefetch_factor = 2});
  loader.start({});
  for (int i = 0; i < 4; ++i) loader.next();  // files are in the page cache, threads are running
  const auto start = Clock::now();
  int64_t images = 0;
  while (seconds_since(start) < seconds) images += static_cast<int64_t>(loader.next().ids.size());
  const double rate = static_cast<double>(images) / seconds_since(start);
  std::printf(
      "{\"bench\":\"image_folder_224\",\"jpeg_scale\":\"%s\",\"workers\":%lld,"
      "\"images_per_second\":%.0f,\"peak_memory_mb\":%.0f}\n",
      scale == JpegScale::kExact ? "exact" : "auto", static_cast<long long>(workers), rate,
      peak_memory_mb());
}

int run(int count, char** words) {
  const auto number = [&](int index, int64_t otherwise) {
    if (index >= count) return otherwise;
    const std::optional<int64_t> value = parse_int64(words[index]);
    if (!value || *value < 0) throw ConfigError(cat(quoted(words[index]), " is no whole number"));
    return *value;
  };
  if (count < 2)
    throw ConfigError("usage: bench_data_pipeline FOLDER [workers] [seconds] [images]");
  const std::string folder = words[1];
  make_files(folder, number(4, 512));
  // Twice in turns: what differs between equal lines is the machine. No crop of 500 x 375 is twice
  // as large as 224 x 224, so here the reduced mode decodes at full size too.
  for (const JpegScale scale :
       {JpegScale::kExact, JpegScale::kAuto, JpegScale::kExact, JpegScale::kAuto}) {
    measure(folder, scale, number(2, 2), static_cast<double>(number(3, 10)));
  }
  return 0;
}

}  // namespace
}  // namespace assay::data

int main(int count, char** words) {
  try {
    return assay::data::run(count, words);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
