# cmake -DSUITES=a.json,b.json -DOUTPUT=embedded_suites.cpp -P embed_suites.cmake
# Writes the suite files as raw string literals. The delimiter is one that no suite contains.
string(REPLACE "," ";" suite_files "${SUITES}")
set(entries "")
foreach(suite_file IN LISTS suite_files)
  get_filename_component(suite_name "${suite_file}" NAME_WE)
  file(READ "${suite_file}" suite_text)
  string(FIND "${suite_text}" ")assay_suite\"" clash)
  if(NOT clash EQUAL -1)
    message(FATAL_ERROR "${suite_file} contains the delimiter )assay_suite\"")
  endif()
  string(APPEND entries "    {\"${suite_name}\", R\"assay_suite(${suite_text})assay_suite\"},\n")
endforeach()
file(WRITE "${OUTPUT}.new" "// Made from harness/suites/*.json by embed_suites.cmake; do not edit.
#include \"harness/suites/embedded.h\"

#include <array>

namespace assay::harness::suites {
namespace {

constexpr EmbeddedSuite kSuites[] = {
${entries}};

}  // namespace

std::span<const EmbeddedSuite> embedded_suites() { return kSuites; }

}  // namespace assay::harness::suites
")
file(RENAME "${OUTPUT}.new" "${OUTPUT}")
