// Who holds up or has failed a job of several ranks, told from their signs of life in the store.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainer/distributed/control_store.h"
#include "trainer/distributed/rank_record.h"
#include "trainer/launch/progress_page.h"

namespace assay::distributed {

// One rank's last sign of life, as the others read it.
struct Beat {
  int64_t number = 0;  // grows four times a second while the process runs
  int64_t step = 0;
  launch::RankPhase phase = launch::RankPhase::kStarting;
  int64_t collectives = 0;
  int64_t elements = 0;
  int64_t planned_elements = 0;
  int64_t steps_begun = 0;  // by this process
  int64_t before_step = 0;  // collectives started when the present step began
  int64_t in_step_before = 0;
};
std::string to_json(const Beat& beat);
Beat beat_from_json(const std::string& text);  // default values for what cannot be read
std::string beat_key(int64_t rank);

struct PeerView {
  RankRecord rank;
  Beat beat;
  bool is_silent = false;  // its beat number stood still
};

struct Suspect {
  int64_t rank = -1;  // -1: the signs do not say
  std::string text;   // why, with step and phase; empty then
};
// Who holds the others up. `own` is this rank's view of itself. A rank without signs of life, then
// one that reduced another size than planned, then one that computes while the others wait, then
// one that is in the next step although it started fewer collectives in this one, then one that
// started fewer or more collectives than most.
Suspect find_suspect(const std::vector<PeerView>& peers, const PeerView& own);

struct FirstFailure {
  int64_t rank = -1;  // that reported it
  int exit_code = 5;
  std::string message;
  int64_t blamed_rank = -1;  // -1: itself
};
// The failure reported first, if any.
std::optional<FirstFailure> first_failure(ControlStore& store);
void report_first_failure(ControlStore& store, const FirstFailure& failure);

// What the store knows about failures and signs of life, before the message. Blocks for up to 1.8
// s.
Suspect explain_from_store(const ControlStore& store, const std::vector<RankRecord>& ranks,
                           int64_t own_rank, const std::string& message);

}  // namespace assay::distributed
