// The real data linked into the program: bytes of the files under data/samples/.
#pragma once

#include <string_view>

namespace assay::data {

std::string_view embedded_digits_images();  // IDX file, 1797 x 8 x 8, values 0..16
std::string_view embedded_digits_labels();  // IDX file, 1797 labels 0..9
std::string_view embedded_text();           // ASCII

}  // namespace assay::data
