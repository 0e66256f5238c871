#include "tests/support/program.h"

#include <csignal>
#include <ctime>

#include "base/clock.h"
#include "base/files.h"
#include "harness/child_process.h"

namespace assay::support {

ProgramEnd run_program(const ProgramRequest& request) {
  const TemporaryFolder folder("assay-program");
  const std::string log = join_path(folder.path(), "output.txt");
  harness::ChildProcess child({.command = request.command,
                               .working_directory = request.working_directory,
                               .environment = request.environment,
                               .dropped_variables = {},
                               .log_file = log});
  const double start = monotonic_seconds();
  while (!child.poll()) {
    if (request.watch) {
      if (const int signal = request.watch(); signal != 0) child.signal_child(signal);
    }
    if (monotonic_seconds() - start > request.limit_seconds) child.signal_group(SIGKILL);
    const timespec pause{0, 1000000};
    nanosleep(&pause, nullptr);
  }
  const harness::ChildExit end = *child.poll();
  ProgramEnd result;
  result.code = end.exit_code ? *end.exit_code : 128 + *end.signal_number;
  result.output = read_file(log);
  return result;
}

}  // namespace assay::support
