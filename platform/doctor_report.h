// What `assay doctor` shows, as text for people and as JSON for programs.
#pragma once

#include <string>
#include <vector>

#include "platform/environment.h"
#include "platform/trainer_check.h"

namespace assay::platform {

struct DoctorRecord {
  Environment environment;
  TrainerCheck trainer;
  std::vector<EnvironmentProblem> problems;  // those of the trainer too, fatal ones first
};

// Puts the parts together: the machine's problems and the trainer's.
DoctorRecord make_doctor_record(Environment environment, TrainerCheck trainer);

bool has_fatal_problem(const DoctorRecord& record);

std::string doctor_text(const DoctorRecord& record);
// {"environment": ..., "program": ..., "trainer": ..., "problems": [...], "has_fatal_problem": ...}
std::string doctor_json(const DoctorRecord& record);

}  // namespace assay::platform
