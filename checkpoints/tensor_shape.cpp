#include "checkpoints/tensor_shape.h"

#include <array>
#include <utility>

#include "base/text.h"
#include "checkpoints/safetensors.h"

namespace assay::checkpoints {
namespace {

// safetensors' names that LibTorch has a type for. Part of the format.
constexpr std::array<std::pair<std::string_view, uint64_t>, 10> kDtypes = {{{"F64", 8},
                                                                            {"F32", 4},
                                                                            {"F16", 2},
                                                                            {"BF16", 2},
                                                                            {"I64", 8},
                                                                            {"I32", 4},
                                                                            {"I16", 2},
                                                                            {"I8", 1},
                                                                            {"U8", 1},
                                                                            {"BOOL", 1}}};

}  // namespace

uint64_t dtype_bytes(std::string_view dtype) {
  for (const auto& [name, bytes] : kDtypes) {
    if (name == dtype) return bytes;
  }
  return 0;
}

std::optional<uint64_t> element_count(const std::vector<int64_t>& shape) {
  uint64_t count = 1;
  bool is_empty = false;
  for (const int64_t dimension : shape) {
    if (dimension < 0) return std::nullopt;
    if (dimension == 0) {
      is_empty = true;
      continue;  // the other dimensions must fit all the same
    }
    const auto factor = static_cast<uint64_t>(dimension);
    if (count > static_cast<uint64_t>(INT64_MAX) / factor) return std::nullopt;
    count *= factor;
  }
  return is_empty ? 0 : count;
}

std::optional<uint64_t> tensor_bytes(std::string_view dtype, const std::vector<int64_t>& shape) {
  const uint64_t width = dtype_bytes(dtype);
  const std::optional<uint64_t> count = element_count(shape);
  if (width == 0 || !count) return std::nullopt;
  if (*count > static_cast<uint64_t>(INT64_MAX) / width) return std::nullopt;
  return *count * width;
}

std::string tensor_name_problem(std::string_view name) {
  if (name.empty()) return "has an empty name";
  if (name == "__metadata__") return "has a name that the format reserves";
  if (!is_valid_utf8(name)) return "has a name that is not UTF-8";
  for (const char letter : name) {
    const auto code = static_cast<unsigned char>(letter);
    if (code < 0x20 || code == 0x7f) return "has a control character in its name";
  }
  return "";
}

std::string shape_text(const std::vector<int64_t>& shape) {
  std::vector<std::string> parts;
  for (const int64_t dimension : shape) parts.push_back(cat(dimension));
  return cat("[", join(parts, ", "), "]");
}

}  // namespace assay::checkpoints
