#include "data/embedded_samples.h"

extern "C" {
// Defined in embedded_samples.S.
extern const char assay_sample_digits_images_begin[];
extern const char assay_sample_digits_images_end[];
extern const char assay_sample_digits_labels_begin[];
extern const char assay_sample_digits_labels_end[];
extern const char assay_sample_text_begin[];
extern const char assay_sample_text_end[];
}

namespace assay::data {
namespace {

std::string_view between(const char* begin, const char* end) {
  return {begin, static_cast<size_t>(end - begin)};
}

}  // namespace

std::string_view embedded_digits_images() {
  return between(assay_sample_digits_images_begin, assay_sample_digits_images_end);
}

std::string_view embedded_digits_labels() {
  return between(assay_sample_digits_labels_begin, assay_sample_digits_labels_end);
}

std::string_view embedded_text() { return between(assay_sample_text_begin, assay_sample_text_end); }

}  // namespace assay::data
