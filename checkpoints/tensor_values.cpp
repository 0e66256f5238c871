#include "checkpoints/tensor_values.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>

#include "base/error.h"
#include "base/text.h"

namespace assay::checkpoints {
namespace {

using Decode = double (*)(const unsigned char*);

// Bytes of a file lie at any address: memcpy, never a cast pointer.
template <class Value>
Value load(const unsigned char* bytes) {
  Value value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

template <class Value>
double decode_as(const unsigned char* bytes) {
  return static_cast<double>(load<Value>(bytes));
}

double decode_bf16(const unsigned char* bytes) {
  const uint32_t bits = uint32_t{load<uint16_t>(bytes)} << 16;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return static_cast<double>(value);
}

// IEEE 754 binary16: 1 sign bit, 5 exponent bits (bias 15), 10 fraction bits.
double decode_f16(const unsigned char* bytes) {
  const auto bits = load<uint16_t>(bytes);
  const int exponent = bits >> 10 & 0x1f;
  const double fraction = bits & 0x3ff;
  double magnitude = 0;
  if (exponent == 0x1f) {
    magnitude = fraction == 0 ? std::numeric_limits<double>::infinity()
                              : std::numeric_limits<double>::quiet_NaN();
  } else if (exponent == 0) {
    magnitude = std::ldexp(fraction, -24);
  } else {
    magnitude = std::ldexp(fraction + 1024, exponent - 25);
  }
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

Decode decoder(std::string_view dtype) {
  if (dtype == "F64") return decode_as<double>;
  if (dtype == "F32") return decode_as<float>;
  if (dtype == "F16") return decode_f16;
  if (dtype == "BF16") return decode_bf16;
  if (dtype == "I64") return decode_as<int64_t>;
  if (dtype == "I32") return decode_as<int32_t>;
  if (dtype == "I16") return decode_as<int16_t>;
  if (dtype == "I8") return decode_as<int8_t>;
  if (dtype == "U8" || dtype == "BOOL") return decode_as<uint8_t>;
  throw InternalError(cat("no decoder for dtype ", dtype));
}

const unsigned char* bytes_of(const TensorView& tensor) {
  return static_cast<const unsigned char*>(tensor.bytes);
}

}  // namespace

std::string element_text(const TensorView& tensor, uint64_t index) {
  const uint64_t width = dtype_bytes(tensor.dtype);
  const unsigned char* element = bytes_of(tensor) + index * width;
  if (tensor.dtype == "I64") return cat(load<int64_t>(element));
  const double value = decoder(tensor.dtype)(element);
  if (tensor.dtype.front() == 'I' || width == 1) return cat(static_cast<int64_t>(value));
  const std::string text = number_text(value);
  if (std::isfinite(value) && value != 0) return text;
  // -0, +0 and the many NaNs look alike as numbers; most significant byte first.
  std::vector<unsigned char> bits(element, element + width);
  std::reverse(bits.begin(), bits.end());
  return cat(text, " (bits 0x", hex_encode(bits), ")");
}

std::vector<unsigned char> as_float32(const TensorView& tensor) {
  const uint64_t width = dtype_bytes(tensor.dtype);
  const Decode decode = decoder(tensor.dtype);
  const uint64_t count = tensor.byte_count / width;
  std::vector<unsigned char> bytes(count * sizeof(float));
  for (uint64_t i = 0; i < count; ++i) {
    const auto value = static_cast<float>(decode(bytes_of(tensor) + i * width));
    std::memcpy(bytes.data() + i * sizeof value, &value, sizeof value);
  }
  return bytes;
}

std::string element_name(const TensorView& tensor, uint64_t index) {
  if (tensor.shape.empty()) return tensor.name;
  std::vector<std::string> parts;
  for (auto dimension = tensor.shape.rbegin(); dimension != tensor.shape.rend(); ++dimension) {
    const auto extent = static_cast<uint64_t>(*dimension);
    parts.push_back(cat(index % extent));
    index /= extent;
  }
  std::reverse(parts.begin(), parts.end());
  return cat(tensor.name, "[", join(parts, ", "), "]");
}

std::optional<uint64_t> first_difference(const TensorView& left, const TensorView& right) {
  if (left.byte_count == 0 || std::memcmp(left.bytes, right.bytes, left.byte_count) == 0) {
    return std::nullopt;
  }
  const unsigned char* begin = bytes_of(left);
  const auto found = std::mismatch(begin, begin + left.byte_count, bytes_of(right));
  return static_cast<uint64_t>(found.first - begin) / dtype_bytes(left.dtype);
}

double relative_difference(const TensorView& left, const TensorView& right) {
  const uint64_t width = dtype_bytes(left.dtype);
  const Decode decode = decoder(left.dtype);
  double difference_squared = 0;
  double right_squared = 0;
  for (uint64_t offset = 0; offset < left.byte_count; offset += width) {
    const double right_value = decode(bytes_of(right) + offset);
    const double difference = decode(bytes_of(left) + offset) - right_value;
    difference_squared += difference * difference;
    right_squared += right_value * right_value;
  }
  if (difference_squared == 0) return 0;  // only the sign of a zero differs
  const double relative = std::sqrt(difference_squared) / std::sqrt(right_squared);
  return std::isfinite(relative) ? relative : std::numeric_limits<double>::infinity();
}

}  // namespace assay::checkpoints
