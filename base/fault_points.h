// Named places at which a test or the harness can make a run fail. Present in every build, off by
// default; armed from outside by ASSAY_FAULTS and recorded in environment.json.
//
//   ASSAY_FAULTS="checkpoint.rename=kill"                 the first hit
//   ASSAY_FAULTS="checkpoint.model.write:3=errno:ENOSPC"  the third hit only
//   ASSAY_FAULTS="train.optimizer:5+=stall:0.05"          every hit from the fifth on
//   ASSAY_FAULTS="train.backward@1:5=stop"               on rank 1 only
//   several are separated by ';'
//
// Actions: kill (a real SIGKILL of this process), stop (a real SIGSTOP), exit:CODE, throw,
// errno:NAME, short (the write takes half of its bytes), stall:SECONDS, on (for the defect.* places
// that ask is_fault_due()). An action that its place could not show (errno where no system call is
// made) is refused.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

struct FaultOutcome {
  int error_number = 0;   // errno to pretend, 0 for none
  bool is_short = false;  // a write should take only part of its bytes
  bool is_due = false;    // action "on"
};

// Announces that the named place is reached. Kills, exits, throws InternalError or stalls if armed
// so; otherwise says what the caller must pretend. Costs one relaxed load when nothing is armed.
// Thread-safe. `name` must be in known_fault_points().
FaultOutcome fault_point(std::string_view name);

// True if an "on" fault of that name is due at this hit (a defect the caller plants in itself).
bool is_fault_due(std::string_view name);

// Every place that exists, sorted; part of the command line's contract for tests.
std::span<const std::string_view> known_fault_points();

// Parses ASSAY_FAULTS once at program start. Throws ConfigError for an unknown point (with the
// nearest spelling), action, or count.
void arm_faults_from_environment();

// This process's rank, for rules that name one; 0 until set.
void set_fault_rank(int64_t rank);

// The same for a given text, with all hits counted from zero; what was armed before is dropped.
void arm_faults(std::string_view specification);
void disarm_faults();

// One relaxed load: lets a caller skip the making of a name.
bool are_faults_armed();

// What is armed, as written; empty in a normal run.
std::vector<std::string> armed_faults();

}  // namespace assay
