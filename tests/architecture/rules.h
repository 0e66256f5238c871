// The project's rules on its own text: who may include whom, where LibTorch may be seen, and what
// no file may hold. Each rule returns its violations as "file:line: what, and what is expected".
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tests/architecture/source_tree.h"

namespace assay {

using Violations = std::vector<std::string>;

Violations forbidden_include_edges(const std::vector<SourceFile>& files);
Violations torch_outside_its_folders(const std::vector<SourceFile>& files);
Violations heavy_headers_in_headers(const std::vector<SourceFile>& files);
Violations standard_output_in_libraries(const std::vector<SourceFile>& files);
Violations long_files(const std::vector<SourceFile>& files);
Violations tests_outside_the_build(const std::vector<SourceFile>& files);
Violations forbidden_words(const std::vector<SourceFile>& files);
Violations characters_beyond_ascii(const std::vector<SourceFile>& files);
// `known` is the table of fault points: a name in code that it lacks, and a name of a kind that
// always stands in code (train.*, data.*, defect.*) that no code asks for.
Violations fault_points_off_the_table(const std::vector<SourceFile>& files,
                                      std::span<const std::string_view> known);
Violations headers_without_guard(const std::vector<SourceFile>& files);

}  // namespace assay
