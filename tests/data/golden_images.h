// The image files of tests/golden/image_decoding.json.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/text.h"

namespace assay::data {

inline std::string from_hex(const std::string& text) {
  const std::vector<unsigned char> bytes = hex_decode(text).value();
  return {bytes.begin(), bytes.end()};
}

// `group` is "small", "large" or "middle_boxes".
inline nlohmann::json golden_images(const std::string& group) {
  return nlohmann::json::parse(read_file(join_path(ASSAY_GOLDEN_DIR, "image_decoding.json")))
      .at(group);
}

inline std::string golden_image(const std::string& group, const std::string& name) {
  for (const nlohmann::json& record : golden_images(group)) {
    if (record["name"] == name) return from_hex(record["file"]);
  }
  throw std::out_of_range("no golden image " + name);
}

}  // namespace assay::data
