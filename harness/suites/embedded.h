// The suite files as text inside the program; the .cpp is made from harness/suites/*.json by
// harness/suites/embed_suites.cmake when building.
#pragma once

#include <span>
#include <string_view>

namespace assay::harness::suites {

struct EmbeddedSuite {
  std::string_view name;
  std::string_view text;
};

std::span<const EmbeddedSuite> embedded_suites();

}  // namespace assay::harness::suites
