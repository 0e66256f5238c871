// This rank's surroundings, as the step sees them; borrowed.
#pragma once

#include "trainer/distributed/gradient_reducer.h"
#include "trainer/distributed/world.h"
#include "trainer/launch/progress_page.h"

namespace assay::step {

struct Ranks {
  distributed::World& world;
  launch::ProgressPage& page;                       // where this rank stands, for others to see
  distributed::GradientReducer* reducer = nullptr;  // null where no group is: one rank
};

}  // namespace assay::step
