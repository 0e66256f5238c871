// What a dry run found, for people and for programs.
#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "trainer/dry_run.h"

namespace assay::trainer {
namespace {

std::string bytes_of(int64_t bytes) { return bytes_text(static_cast<uint64_t>(bytes)); }

std::string row(std::string name, const std::string& value) {
  constexpr size_t kWidth = 30;
  name.resize(std::max(kWidth, name.size() + 1), ' ');
  return cat("  ", name, value, "\n");
}

std::string ids_text(const std::vector<int64_t>& ids) {
  constexpr size_t kShown = 8;
  std::vector<std::string> shown;
  for (size_t i = 0; i < std::min(ids.size(), kShown); ++i) shown.push_back(cat(ids[i]));
  return cat(ids.size(), shown.empty() ? "" : ": ", join(shown, " "),
             ids.size() > kShown ? " ..." : "");
}

}  // namespace

double DryRun::ring_bytes() const {
  const auto ranks = static_cast<double>(world_size);
  return 2.0 * (ranks - 1.0) / ranks * static_cast<double>(all_reduce_bytes);
}

std::string dry_run_text(const DryRun& run) {
  std::string text =
      cat("In the role of rank ", run.rank, " of ", run.world_size, " on ", run.device, ": ",
          run.sample_ids.size(),
          " real steps whose collectives return at once; nothing is learned or written\n");
  text += row("global batch", cat(run.global_batch, ", ", run.steps_per_epoch, " steps an epoch"));
  text += row("samples an epoch", cat(run.samples_per_epoch, " of ", run.dataset_samples));
  for (size_t i = 0; i < run.sample_ids.size(); ++i) {
    text += row(cat("samples of step ", i + 1), ids_text(run.sample_ids[i]));
  }
  if (!run.sample_ids.empty() && run.sample_ids.front().empty()) {
    text += "  This rank has nothing to do: the global batch is larger than the data set.\n";
  }
  text += row("weights", bytes_of(run.parameter_bytes));
  text += row("gradients",
              cat(bytes_of(run.gradient_bytes), " in ", run.bucket_bytes.size(), " bucket(s)"));
  text += row("optimizer, this rank's part", bytes_of(run.optimizer_bytes));
  text += row("all-reduced a step",
              cat(bytes_of(run.all_reduce_bytes), "; a ring sends ",
                  bytes_of(static_cast<int64_t>(run.ring_bytes())), " from each rank"));
  if (run.broadcast_bytes > 0) {
    text += row("broadcast a step", cat(bytes_of(run.broadcast_bytes), ", of all owners"));
  }
  if (run.peak_device_bytes > 0) {
    text += row("peak of a step on the device",
                cat(bytes_of(run.peak_device_bytes), ", of the first, which tries kernels out, ",
                    bytes_of(run.first_peak_device_bytes)));
  }
  text += row("peak of the process in memory", bytes_of(run.peak_host_bytes));
  const double step_ms = std::round(run.step_ms * 100.0) / 100.0;
  return text + row("a step without waiting", cat(step_ms, " ms, the median after the first"));
}

std::string dry_run_json(const DryRun& run) {
  const nlohmann::ordered_json json = {
      {"schema_version", 1},
      {"rank", run.rank},
      {"world_size", run.world_size},
      {"device", run.device},
      {"dataset_samples", run.dataset_samples},
      {"global_batch", run.global_batch},
      {"steps_per_epoch", run.steps_per_epoch},
      {"samples_per_epoch", run.samples_per_epoch},
      {"sample_ids", run.sample_ids},
      {"parameter_bytes", run.parameter_bytes},
      {"gradient_bytes", run.gradient_bytes},
      {"optimizer_bytes", run.optimizer_bytes},
      {"bucket_bytes", run.bucket_bytes},
      {"all_reduce_bytes", run.all_reduce_bytes},
      {"ring_bytes", run.ring_bytes()},
      {"broadcast_bytes", run.broadcast_bytes},
      {"first_peak_device_bytes", run.first_peak_device_bytes},
      {"peak_device_bytes", run.peak_device_bytes},
      {"peak_host_bytes", run.peak_host_bytes},
      {"step_ms", run.step_ms},
  };
  return json.dump(2) + "\n";
}

}  // namespace assay::trainer
