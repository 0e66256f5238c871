// Runs a program for a test and hands back what it said and how it ended.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace assay::support {

struct ProgramEnd {
  int code = 0;        // exit code, or 128 + signal if a signal ended it
  std::string output;  // stdout and stderr together
};

struct ProgramRequest {
  std::vector<std::string> command;
  std::map<std::string, std::string> environment = {};
  std::string working_directory = {};
  // Called every millisecond while the program runs; returns a signal to send, or 0. May be empty.
  std::function<int()> watch = {};
  double limit_seconds = 120;  // then SIGKILL, so that a hang fails the test
};

ProgramEnd run_program(const ProgramRequest& request);

}  // namespace assay::support
