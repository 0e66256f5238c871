// report.md: for tickets and step summaries. Tables, verdict first.
#include "base/text.h"
#include "harness/report/escape.h"
#include "harness/report/report.h"
#include "harness/report/report_cells.h"

namespace assay::harness {
namespace {

class MarkdownWriter {
 public:
  MarkdownWriter(const Report& report, Language language) : report_(report), language_(language) {}

  std::string write() {
    write_head();
    write_scorecard();
    write_scenarios();
    write_diagnosis();
    for (const ScenarioResult& scenario : report_.scenarios) write_checks(scenario);
    write_tail();
    return out_;
  }

 private:
  std::string text(std::string_view key) const { return std::string(report_text(language_, key)); }

  void row(const std::vector<std::string>& cells) {
    for (const std::string& cell : cells) out_ += cat("| ", markdown_escaped(cell), " ");
    out_ += "|\n";
  }

  void header(const std::vector<std::string>& cells) {
    row(cells);
    for (size_t i = 0; i < cells.size(); ++i) out_ += "|---";
    out_ += "|\n";
  }

  void heading(std::string_view title) { out_ += cat("\n## ", markdown_escaped(title), "\n\n"); }

  void write_head() {
    const std::string verdict(verdict_name(report_.verdict));
    out_ += cat("# ", text("heading.title"), ": ", text(cat("verdict.", verdict)), "\n\n",
                text(cat("summary.", verdict)), "\n\n");
    if (!report_.is_finished) {
      out_ +=
          cat("**", text("word.unfinished"), ": ", markdown_escaped(report_.stop_reason), "**\n\n");
    }
    header({text("column.name"), text("column.value")});
    row({text("word.device"), report_.device});
    row({text("word.suite"), cat(report_.suite, ": ", report_.suite_description)});
    if (!report_.config_file.empty()) row({text("word.config"), report_.config_file});
    row({text("word.started"), report_.started_utc});
    row({text("word.duration"), duration_text(report_.seconds)});
    row({text("word.version"), report_.version});
    row({text("word.command"), report_.command});
  }

  void write_scorecard() {
    heading(text("heading.scorecard"));
    header({text("column.name"), text("column.value"), text("column.note")});
    for (const ScoreLine& line : report_.scorecard) {
      row({text(cat("score.", line.key)), score_cell(line, language_), line.note});
    }
  }

  void write_scenarios() {
    heading(text("heading.scenarios"));
    header({text("column.scenario"), text("column.verdict"), text("column.seconds"),
            text("column.reason")});
    for (const ScenarioResult& scenario : report_.scenarios) {
      row({cat(scenario.name, ": ", scenario_title(scenario.name, language_)),
           text(cat("verdict.", verdict_name(scenario.verdict))), shown_number(scenario.seconds),
           scenario.reason});
    }
  }

  void write_diagnosis() {
    heading(text("heading.diagnosis"));
    header({text("column.what"), text("heading.evidence"), text("column.next_step")});
    for (const ScenarioResult& scenario : report_.scenarios) {
      for (const Advice& advice : scenario.advice) {
        row({advice.what, advice.evidence, advice.next_step});
      }
    }
  }

  void write_checks(const ScenarioResult& scenario) {
    if (scenario.checks.empty()) return;
    heading(cat(text("heading.checks"), ": ", scenario.name));
    header({text("column.check"), text("column.verdict"), text("column.kind"),
            text("column.measured"), text("column.threshold"), text("column.reason")});
    for (const Check& check : scenario.checks) {
      row({check_title(check, language_), verdict_cell(check, language_),
           kind_cell(check, language_), measured_cell(check), threshold_cell(check), check.reason});
    }
  }

  void write_tail() {
    heading(text("heading.evidence"));
    out_ += cat(markdown_escaped(text("text.evidence")), "\n");
    heading(text("heading.questions"));
    out_ += cat(markdown_escaped(text("text.questions")), "\n");
    if (language_ != Language::kEnglish) {
      out_ += cat("\n", markdown_escaped(text("text.reasons_english")), "\n");
    }
  }

  const Report& report_;
  Language language_;
  std::string out_;
};

}  // namespace

std::string report_to_markdown(const Report& report, Language language) {
  return MarkdownWriter(report, language).write();
}

}  // namespace assay::harness
