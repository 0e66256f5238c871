#include "harness/report/report_plots.h"

#include <optional>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "harness/step_timing.h"
#include "trainer/metrics/step_record.h"

namespace assay::harness {
namespace {

using metrics::StepRecord;

std::vector<StepRecord> read_steps(const std::string& folder, const Curve& curve) {
  // A path out of a report that somebody else may have made: only files below the folder.
  for (const std::string& part : split(curve.path, '/')) {
    if (part.empty() || part == "..") return {};
  }
  try {
    return metrics::read_metrics(join_path(folder, curve.path)).steps;
  } catch (const Error&) {
    return {};  // the plot then says that there are no data
  } catch (const FileError&) {
    return {};
  }
}

Plot empty_plot(Language language, std::string_view kind, std::string_view y_axis) {
  Plot plot;
  plot.title = std::string(report_text(language, cat("plot.", kind)));
  plot.x_label = std::string(report_text(language, "axis.step"));
  plot.y_label = std::string(report_text(language, y_axis));
  plot.no_data_text = std::string(report_text(language, "plot.no_data"));
  return plot;
}

// The workload of a curve: the first word of its label ("digits control").
std::string workload_of(const Curve& curve) { return split(curve.label, ' ').front(); }

void add_loss(const Curve& curve, const std::vector<StepRecord>& steps, Plot& plot) {
  PlotLine line;
  line.label = curve.label;
  line.is_dashed = curve.mark_step > 0;
  for (const StepRecord& record : steps) {
    line.points.push_back({static_cast<double>(record.step), record.loss});
  }
  plot.lines.push_back(line);
  if (curve.mark_step > 0) {
    plot.marks.push_back({static_cast<double>(curve.mark_step), curve.mark_label});
  }
}

void add_step_time(const Curve& curve, const std::vector<StepRecord>& steps, Plot& plot) {
  PlotLine line;
  line.label = curve.label;
  for (const StepRecord& record : steps) {
    line.points.push_back({static_cast<double>(record.step), record.time_ms});
  }
  plot.lines.push_back(line);
}

void add_phases(const std::vector<StepRecord>& steps, Plot& plot) {
  plot.is_stacked = true;
  for (const PhaseField& phase : kPhaseFields) {
    PlotLine line;
    line.label = std::string(phase.name);
    for (const StepRecord& record : steps) {
      line.points.push_back({static_cast<double>(record.step), record.phases.*phase.milliseconds});
    }
    plot.lines.push_back(line);
  }
}

}  // namespace

std::vector<Plot> make_plots(const Report& report, Language language, const std::string& folder) {
  std::vector<Plot> plots;
  for (const ScenarioResult& scenario : report.scenarios) {
    std::optional<Plot> loss;
    std::string loss_workload;
    const auto finish_loss = [&] {
      if (loss) plots.push_back(*loss);
      loss.reset();
    };
    for (const Curve& curve : scenario.curves) {
      const std::vector<StepRecord> steps = read_steps(folder, curve);
      if (curve.plot == "loss") {
        if (workload_of(curve) != loss_workload) finish_loss();
        if (!loss) loss = empty_plot(language, "loss", "axis.loss");
        loss_workload = workload_of(curve);
        if (loss->lines.empty()) loss->title += cat(": ", loss_workload);
        add_loss(curve, steps, *loss);
      } else if (curve.plot == "step_time" || curve.plot == "phases") {
        Plot plot = empty_plot(language, curve.plot, "axis.milliseconds");
        plot.title += cat(": ", curve.label);
        if (curve.plot == "phases") {
          add_phases(steps, plot);
        } else {
          add_step_time(curve, steps, plot);
        }
        plots.push_back(plot);
      }
    }
    finish_loss();
  }
  return plots;
}

}  // namespace assay::harness
