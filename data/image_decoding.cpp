#include "data/image_decoding.h"

#include "base/error.h"
#include "base/text.h"
#include "data/augment.h"
#include "data/image_file.h"
#include "data/resample.h"

namespace assay::data {
namespace {

constexpr int64_t kImageNetSide = 224;
// Of ImageNet's training images, x / 255, as every recipe since 2015 has them.
constexpr float kMean[] = {0.485F, 0.456F, 0.406F};
constexpr float kStddev[] = {0.229F, 0.224F, 0.225F};

// What one thread needs, kept for its next image.
struct Workspace {
  DecodedRegion region;
  Resampler resampler;
  RgbPixels resized;
};

Workspace& workspace() {
  thread_local Workspace space;
  return space;
}

// Interleaved colours to planes, mirrored or not.
void write_planes(const RgbPixels& pixels, bool is_flipped, std::span<unsigned char> planes) {
  const int64_t width = pixels.size().width;
  const int64_t height = pixels.size().height;
  for (int64_t c = 0; c < RgbPixels::kChannels; ++c) {
    unsigned char* to = planes.data() + c * width * height;
    for (int64_t y = 0; y < height; ++y, to += width) {
      const unsigned char* from = pixels.row(y) + c;
      if (is_flipped) {
        for (int64_t x = 0; x < width; ++x) to[width - 1 - x] = from[x * RgbPixels::kChannels];
      } else {
        for (int64_t x = 0; x < width; ++x) to[x] = from[x * RgbPixels::kChannels];
      }
    }
  }
}

struct Decoder {
  ImageSize size;
  JpegScale scale = JpegScale::kExact;

  void framed(std::string_view bytes, const std::string& origin,
              std::span<unsigned char> planes) const {
    Workspace& space = workspace();
    const auto file = open_image_file(bytes, origin, scale);
    const ImageSize whole = file->size();
    const EvalFrame frame = eval_frame(whole, size);
    file->decode({0, 0, whole.width, whole.height}, frame.resized, space.region);
    space.resampler.run(space.region.pixels, space.region.box, {frame.resized, frame.crop},
                        space.resized);
    write_planes(space.resized, false, planes);
  }

  void augmented(std::string_view bytes, const std::string& origin, const SampleDraw& draw,
                 std::span<unsigned char> planes) const {
    Workspace& space = workspace();
    const auto file = open_image_file(bytes, origin, scale);
    SampleRandom crop(draw.context, draw.id, Purpose::kCrop);
    SampleRandom flip(draw.context, draw.id, Purpose::kFlip);
    file->decode(random_resized_crop(file->size(), crop), size, space.region);
    space.resampler.run(space.region.pixels, space.region.box,
                        {size, {0, 0, size.width, size.height}}, space.resized);
    write_planes(space.resized, random_flip(flip), planes);
  }
};

}  // namespace

ImageDecoding make_image_decoding(const DataRequest& request) {
  const std::vector<int64_t> shape = request.image_shape.empty()
                                         ? std::vector<int64_t>{3, kImageNetSide, kImageNetSide}
                                         : request.image_shape;
  if (request.is_tokens || shape.size() != 3 || shape[0] != RgbPixels::kChannels) {
    throw ConfigError(cat("data set ", request.name,
                          ": image files give 3 colours, the model takes ",
                          request.is_tokens ? "tokens" : cat(shape.at(0), " channels"),
                          ". Fix: a model for colour images, e.g. --model resnet50"));
  }
  const Decoder decoder{{shape[2], shape[1]}, request.jpeg_scale};
  ImageDecoding decoding;
  decoding.spec.feature_shape = shape;
  decoding.spec.mean.assign(std::begin(kMean), std::end(kMean));
  decoding.spec.stddev.assign(std::begin(kStddev), std::end(kStddev));
  decoding.plain = [decoder](std::string_view file, const std::string& origin, int64_t,
                             std::span<unsigned char> pixels) {
    decoder.framed(file, origin, pixels);
  };
  if (request.augment) {
    decoding.augmented = [decoder](std::string_view file, const std::string& origin,
                                   const SampleDraw& draw, std::span<unsigned char> pixels) {
      decoder.augmented(file, origin, draw, pixels);
    };
  }
  decoding.recipe = cat(request.augment ? "RandomResizedCrop, RandomHorizontalFlip; " : "",
                        "Resize ", eval_resize_of(shape[1]), ", CenterCrop; JPEG ",
                        request.jpeg_scale == JpegScale::kExact ? "exact" : "reduced");
  return decoding;
}

}  // namespace assay::data
