#include "harness/machine_use.h"

#include <algorithm>
#include <string>
#include <vector>

#include <unistd.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/text.h"

namespace assay::harness {

std::optional<MachineUse> read_machine_use() {
  std::string text;
  try {
    text = read_file("/proc/stat");
  } catch (const FileError&) {
    return std::nullopt;  // hidden in some containers: then it is simply not known
  }
  // proc(5): "cpu  user nice system idle iowait irq softirq steal ..." in clock ticks.
  std::vector<double> ticks;
  for (const std::string& word : split(text.substr(0, text.find('\n')), ' ')) {
    if (const auto number = parse_double(word)) ticks.push_back(*number);
  }
  constexpr size_t kIdle = 3, kWait = 4, kSteal = 7;
  if (ticks.size() <= kSteal) return std::nullopt;
  MachineUse use;
  const auto ticks_a_second = static_cast<double>(sysconf(_SC_CLK_TCK));
  for (size_t i = 0; i <= kSteal; ++i) {
    if (i != kIdle && i != kWait) use.busy_seconds += ticks[i] / ticks_a_second;
  }
  use.stolen_seconds = ticks[kSteal] / ticks_a_second;
  use.at_seconds = monotonic_seconds();
  return use;
}

double other_use_fraction(const MachineUse& before, const MachineUse& after, double own_cpu_seconds,
                          double cpus) {
  const double wall = after.at_seconds - before.at_seconds;
  if (wall <= 0 || cpus <= 0) return 0;
  const double other = after.busy_seconds - before.busy_seconds - own_cpu_seconds;
  return std::clamp(other / (wall * cpus), 0.0, 1.0);
}

}  // namespace assay::harness
