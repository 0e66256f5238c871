// Arithmetic of tensor names, dtypes and shapes that come from files. Internal to checkpoints/.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::checkpoints {

// Upstream's limit for a safetensors header; part of the format.
inline constexpr uint64_t kMaxHeaderBytes = 100'000'000;

// Elements of a shape (1 for a scalar); nothing if it is negative or does not fit.
std::optional<uint64_t> element_count(const std::vector<int64_t>& shape);

// Bytes of a tensor; nothing for an unknown dtype or a size that does not fit 63 bits.
std::optional<uint64_t> tensor_bytes(std::string_view dtype, const std::vector<int64_t>& shape);

// What is wrong with a tensor's name ("is empty", "holds a control character"); empty if nothing.
std::string tensor_name_problem(std::string_view name);

std::string shape_text(const std::vector<int64_t>& shape);  // "[64, 3, 7, 7]"

}  // namespace assay::checkpoints
