// Runs the built `assay` program as a user's shell would.
#pragma once

#include <string>

namespace assay::cli {

struct ProgramRun {
  int exit_code = 0;  // 128+N after signal N
  std::string output;
  std::string errors;
};

// `line` follows the program's name in a shell command; `before` is put in front of it, e.g.
// variables: "A=1 ".
ProgramRun run_assay(const std::string& line, const std::string& before = "");

}  // namespace assay::cli
