// SIGTERM, SIGINT and SIGUSR1 as a request to stop after the current step; a second one ends at
// once, unless it is the first one again, passed on by the parent process within 2 s.
#pragma once

#include <string>

namespace assay::run {

// Installs the handlers for the life of the program. Call once, in main.
void install_stop_signals();

// The first signal that asked to stop, 0 for none. Async-signal-safe state, readable by any thread.
int requested_stop_signal();

// "SIGTERM" for 15.
std::string signal_name(int signal_number);

}  // namespace assay::run
