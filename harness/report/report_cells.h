// How one check, score and fact is worded in a table, the same in Markdown and HTML. Plain text;
// the writers escape it.
#pragma once

#include <string>
#include <string_view>

#include "harness/check.h"
#include "harness/report/strings.h"
#include "harness/scorecard.h"

namespace assay::harness {

std::string measured_cell(const Check& check);
std::string threshold_cell(const Check& check);
std::string kind_cell(const Check& check, Language language);
// "pass", "fail", or for a failed advisory check "finding".
std::string verdict_cell(const Check& check, Language language);
std::string score_cell(const ScoreLine& line, Language language);
std::string fact_cell(const Fact& fact);
std::string check_title(const Check& check, Language language);
std::string scenario_title(std::string_view scenario, Language language);

}  // namespace assay::harness
