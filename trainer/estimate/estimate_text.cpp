// The report of `assay estimate` for people.
#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"
#include "trainer/estimate/estimate.h"

namespace assay::estimate {
namespace {

std::string bytes_of(int64_t bytes) { return bytes_text(static_cast<uint64_t>(bytes)); }

// Three significant digits.
std::string short_number(double value) {
  if (value == 0 || !std::isfinite(value)) return number_text(value);
  const double scale = std::pow(10.0, 2.0 - std::floor(std::log10(std::abs(value))));
  const double rounded = std::round(value * scale) / scale;
  return number_text(scale < 1 ? std::round(rounded) : rounded);
}

std::string with_prefix(double value, std::string_view unit) {
  constexpr std::array<std::string_view, 6> kPrefixes = {"", "k", "M", "G", "T", "P"};
  size_t prefix = 0;
  while (value >= 1000 && prefix + 1 < kPrefixes.size()) {
    value /= 1000;
    ++prefix;
  }
  return cat(short_number(value), " ", kPrefixes[prefix], unit);
}

// Rows of cells, two spaces between: the first column to the left, the others to the right, those
// from `first_text` on to the left again.
class Table {
 public:
  explicit Table(size_t first_text = SIZE_MAX) : first_text_(first_text) {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  std::string text() const {
    std::vector<size_t> widths;
    for (const auto& row : rows_) {
      widths.resize(std::max(widths.size(), row.size()), 0);
      for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
    }
    std::string out;
    for (const auto& row : rows_) {
      std::string line = " ";
      for (size_t i = 0; i < row.size(); ++i) {
        const std::string pad(widths[i] - row[i].size(), ' ');
        line += cat(i == 0 ? " " : "  ", i == 0 || i >= first_text_ ? row[i] + pad : pad + row[i]);
      }
      out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
    }
    return out;
  }

 private:
  size_t first_text_;
  std::vector<std::vector<std::string>> rows_;
};

std::string heading_text(const Estimate& estimate) {
  const RunFacts& run = estimate.run;
  const StepTrace& trace = estimate.trace;
  std::string text =
      cat(run.model, ": ", trace.parameters, " parameters in ", trace.parameter_tensors,
          " tensors; ", run.precision, ", ", run.optimizer, ", micro-batch ", run.batch_size);
  if (trace.tokens > 0) text += cat(" x ", trace.tokens / trace.samples, " tokens");
  return cat(text, ", accumulation ", run.grad_accum_steps, ", on ",
             run.is_gpu ? "a GPU" : "the CPU", "\n");
}

bool has_float_convolutions(const Estimate& estimate) {
  return estimate.run.is_gpu && std::any_of(estimate.trace.work.begin(), estimate.trace.work.end(),
                                            [](const OperationWork& work) {
                                              return work.name == "convolution" &&
                                                     work.arithmetic == Arithmetic::kSingle;
                                            });
}

std::string memory_text(const Estimate& estimate) {
  const StepTrace& trace = estimate.trace;
  Table table;
  for (size_t kind = 0; kind < kNumMemoryKinds; ++kind) {
    table.add({std::string(memory_kind_name(kind)), bytes_of(trace.steady_peak.by_kind[kind])});
  }
  table.add({"steady peak", bytes_of(trace.steady_peak.bytes)});
  table.add({"first step's peak", bytes_of(trace.first_peak.bytes)});
  table.add({"after loading", bytes_of(trace.load_bytes)});
  table.add({"taken from the device by the allocator", bytes_of(trace.reserved_bytes)});
  table.add({"kept from forward to backward", bytes_of(trace.activation_bytes)});
  if (estimate.measured_peak_bytes > 0) {
    table.add({"measured peak of the run", bytes_of(estimate.measured_peak_bytes)});
  }
  return cat("\nDevice memory at the peak of a step, by kind\n", table.text(),
             has_float_convolutions(estimate)
                 ? "  cuDNN takes more where there is room: it chooses float32 kernels by trying\n"
                 : "");
}

std::string host_text(const Estimate& estimate) {
  const HostMemory& host = estimate.host;
  Table table(2);
  table.add({"host memory", bytes_of(host.total_bytes()),
             cat("of ", bytes_of(estimate.host_available_bytes), " available")});
  table.add({"  program", bytes_of(host.program_bytes)});
  table.add({"  weights, then the copy for a checkpoint",
             bytes_of(std::max(host.weights_bytes, host.checkpoint_bytes))});
  table.add({"  loader", bytes_of(host.loader_bytes)});
  table.add({"a checkpoint", bytes_of(estimate.room.bytes_each)});
  table.add(
      {cat("checkpoint room, for ", estimate.room.count), bytes_of(estimate.room.total_bytes()),
       cat("of ", bytes_of(estimate.room_free_bytes), " free in ", escaped(estimate.room_folder))});
  return cat("\nHost memory and disk\n", table.text());
}

std::string work_text(const Estimate& estimate) {
  const Work& work = estimate.work;
  Table table;
  table.add({"forward", with_prefix(work.forward_flops, "FLOP")});
  table.add({"backward", with_prefix(work.backward_flops, "FLOP")});
  table.add({"a step", with_prefix(work.total_flops(), "FLOP")});
  if (work.formula_flops > 0) {
    table.add({"a step as 6 N + 12 L D T a token", with_prefix(work.formula_flops, "FLOP")});
  }
  table.add({"memory moved by a step", with_prefix(work.bytes_moved, "B")});
  std::string text =
      cat("\nWork of one rank: multiplications and additions of products and convolutions\n",
          table.text());
  if (!estimate.run.is_gpu) return text;
  Table bounds;
  const bool has_tokens = estimate.trace.tokens > 0;
  bounds.add({"card", "step ms", has_tokens ? "tokens/s" : "samples/s"});
  for (const CardBound& bound : estimate.bounds) {
    bounds.add({bound.card, short_number(bound.step_ms),
                short_number(has_tokens ? bound.tokens_per_s : bound.samples_per_s)});
  }
  return cat(text, "\nLeast time of a step: every operation at the card's best, none overlapped\n",
             bounds.text());
}

std::string fits_text(const Estimate& estimate) {
  if (estimate.fits.empty()) return "\nfp64 runs on the CPU only: no card is looked at\n";
  Table table(2);
  table.add({"card", "needs", "fits"});
  for (const CardFit& fit : estimate.fits) {
    std::string verdict = "not even with every rung";
    if (fit.rung) {
      verdict = fit.rung->words.empty()
                    ? "as configured"
                    : cat("with ", fit.rung->name, ": ", join(fit.rung->words, " "));
    }
    if (!fit.missing.empty()) {
      verdict += cat(" (", join(fit.missing, ", "), ": not in this release)");
    }
    table.add({cat(fit.gb, " GB"), fit.rung ? bytes_of(fit.rung->needed_bytes) : "-", verdict});
  }
  return cat("\nCards it fits, with ", short_number(100 * kHeadroomFraction),
             " % headroom and the CUDA context; rungs keep the global batch\n", table.text());
}

std::string kv_text(const Estimate& estimate) {
  if (estimate.kv_cache.empty()) return "";
  Table table;
  table.add({"requests", "context", "weights", "cache", "together"});
  for (const KvCacheRow& row : estimate.kv_cache) {
    table.add({cat(row.requests), cat(row.context), bytes_of(row.weights_bytes),
               bytes_of(row.cache_bytes), bytes_of(row.weights_bytes + row.cache_bytes)});
  }
  return cat("\nServing: weights and key-value cache in 2 bytes a number\n", table.text());
}

std::string links_text(const Cluster& cluster) {
  const auto link = [](const Link& one) {
    return cat(short_number(one.gb_per_s), " GB/s, ", short_number(one.latency_us), " us");
  };
  return cat(link(cluster.intra), " within a host of ", cluster.ranks_per_node, " ranks, ",
             link(cluster.inter), " between hosts");
}

std::string scaling_text(const Estimate& estimate) {
  if (!estimate.scaling) return "";
  const Scaling& scaling = *estimate.scaling;
  Table table;
  table.add({"ranks", "step ms", "comm ms", "exposed ms", "stragglers ms", "efficiency",
             "memory a rank"});
  for (const ScalingRow& row : scaling.rows) {
    const ScalingPrediction& one = row.prediction;
    table.add({cat(one.ranks), short_number(one.step_ms), short_number(one.total_comm_ms),
               short_number(one.exposed_comm_ms), short_number(one.straggler_ms),
               short_number(one.efficiency), bytes_of(row.peak_bytes)});
  }
  double bytes = 0;
  for (const Bucket& bucket : scaling.step.buckets) bytes += bucket.bytes;
  return cat("\nSeveral ranks, the batch growing with them\n  step: ", scaling.step_source,
             "\n  links: ", links_text(scaling.cluster), " (", scaling.link_source,
             ")\n  gradients: ", bytes_of(static_cast<int64_t>(bytes)), " in ",
             scaling.step.buckets.size(), " bucket(s)\n", table.text(), "  efficiency falls under ",
             short_number(kEfficiencyBound),
             scaling.below_bound ? cat(" at ", *scaling.below_bound, " ranks\n")
                                 : std::string(" at no number up to 2^20 ranks\n"));
}

std::string here_text(const Estimate& estimate) {
  const Here& here = estimate.here;
  return cat("\nHere: ", escaped(here.device), ", ", bytes_of(here.memory_bytes),
             " usable, the run needs ", bytes_of(here.needed_bytes),
             here.fits() ? ": it fits\n" : ": it does NOT fit\n");
}

}  // namespace

std::string estimate_text(const Estimate& estimate) {
  return cat(heading_text(estimate), memory_text(estimate), host_text(estimate),
             work_text(estimate), fits_text(estimate), kv_text(estimate), scaling_text(estimate),
             here_text(estimate));
}

}  // namespace assay::estimate
