// report.html: one file that needs nothing from anywhere, with no script at all. Verdict first.
#include "base/text.h"
#include "harness/report/escape.h"
#include "harness/report/report.h"
#include "harness/report/report_cells.h"
#include "harness/report/report_plots.h"
#include "harness/report/svg_plot.h"

namespace assay::harness {
namespace {

// Colours: the Okabe-Ito set, told apart by colour-blind readers; darker ground in dark mode.
constexpr std::string_view kStyle = R"css(
:root{color-scheme:light dark;--bg:#fff;--fg:#1a1a1a;--dim:#595959;--rule:#d0d0d0;--box:#f5f5f5;
--pass:#1b6e2d;--fail:#b00020;--wait:#7a5200}
@media(prefers-color-scheme:dark){:root{--bg:#16181c;--fg:#e8e8e8;--dim:#a9a9a9;--rule:#3c4046;
--box:#20242a;--pass:#6fcf84;--fail:#ff7b8a;--wait:#e6b450}}
body{background:var(--bg);color:var(--fg);font:16px/1.5 system-ui,sans-serif;max-width:68rem;
margin:0 auto;padding:1.5rem;overflow-wrap:break-word}
a,code,pre{overflow-wrap:anywhere}
h1{font-size:1.6rem;margin:0 0 .3rem}h2{font-size:1.25rem;margin:2rem 0 .6rem}
h3{font-size:1.05rem;margin:1.2rem 0 .4rem}
table{border-collapse:collapse;width:100%;font-size:.9rem}
th,td{border-bottom:1px solid var(--rule);padding:.35rem .5rem;text-align:left;vertical-align:top}
th{color:var(--dim);font-weight:600}thead th,td.kind{white-space:nowrap}
.banner{border-left:.5rem solid;padding:.8rem 1rem;background:var(--box);margin:1rem 0}
.pass{color:var(--pass)}.fail{color:var(--fail)}.could_not_run,.finding{color:var(--wait)}
td.pass,td.fail,td.could_not_run,td.finding{font-weight:600;white-space:nowrap}
.banner strong{font-size:1.4rem}.banner p{color:var(--fg);margin:.2rem 0}
.dim{color:var(--dim)}code,pre{font-family:ui-monospace,monospace;font-size:.85rem}
pre{background:var(--box);padding:.8rem;overflow-x:auto;white-space:pre-wrap}
summary{cursor:pointer;font-weight:600}figure{margin:1rem 0}
figure>svg{width:100%;height:auto;background:var(--box)}
.swatch{width:18px;height:10px;margin-right:.3rem}.key{margin-right:.8rem;font-size:.85rem;white-space:nowrap}
text{fill:var(--fg);font-family:system-ui,sans-serif}.pt{font-size:14px;font-weight:600}
.pl{font-size:11px;fill:var(--dim)}.pg{stroke:var(--rule);stroke-width:.6}.pa{stroke:var(--dim)}
.pm{stroke:var(--fail);stroke-dasharray:3 3}.line{fill:none;stroke-width:1.6}
.dash{stroke-dasharray:6 4;stroke-width:2.6}
.s0{stroke:#0072b2;fill:#0072b2}.s1{stroke:#e69f00;fill:#e69f00}.s2{stroke:#009e73;fill:#009e73}
.s3{stroke:#cc79a7;fill:#cc79a7}.s4{stroke:#56b4e9;fill:#56b4e9}.s5{stroke:#d55e00;fill:#d55e00}
.s6{stroke:#f0e442;fill:#f0e442}.s7{stroke:#888;fill:#888}polyline.line{fill:none}
@media print{details{display:block}body{max-width:none}}
)css";

class HtmlWriter {
 public:
  HtmlWriter(const Report& report, Language language, const std::string& folder)
      : report_(report), language_(language), folder_(folder) {}

  std::string write() {
    write_head();
    write_banner();
    write_scorecard();
    write_diagnosis();
    write_scenarios();
    for (const ScenarioResult& scenario : report_.scenarios) write_checks(scenario);
    write_curves();
    write_platform();
    write_tail();
    return out_;
  }

 private:
  std::string text(std::string_view key) const {
    return markup_escaped(report_text(language_, key));
  }

  static std::string cell(const std::string& content, std::string_view style = "") {
    const std::string attribute = style.empty() ? "" : cat(" class=\"", style, "\"");
    return cat("<td", attribute, ">", markup_escaped(content), "</td>");
  }

  void heading(std::string_view key, const std::string& id) {
    out_ += cat("<h2 id=\"", id, "\">", text(key), "</h2>\n");
  }

  void open_table(const std::vector<std::string_view>& columns) {
    out_ += "<table><thead><tr>";
    for (const std::string_view column : columns) {
      out_ += cat("<th scope=\"col\">", text(column), "</th>");
    }
    out_ += "</tr></thead><tbody>\n";
  }
  void close_table() { out_ += "</tbody></table>\n"; }

  void write_head() {
    const std::string verdict = text(cat("verdict.", verdict_name(report_.verdict)));
    out_ += cat("<!doctype html>\n<html lang=\"", language_tag(language_),
                "\"><head><meta charset=\"utf-8\">\n"
                "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                "style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n"
                "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                "<meta name=\"referrer\" content=\"no-referrer\">\n<title>",
                text("heading.title"), ": ", verdict, "</title>\n<style>", kStyle,
                "</style></head><body>\n");
  }

  void fact_row(std::string_view key, const std::string& value) {
    if (!value.empty()) {
      out_ += cat("<tr><th scope=\"row\">", text(key), "</th>", cell(value), "</tr>\n");
    }
  }

  void write_banner() {
    const std::string verdict(verdict_name(report_.verdict));
    out_ += cat("<h1>", text("heading.title"), "</h1>\n<div class=\"banner ", verdict,
                "\"><strong>", text(cat("verdict.", verdict)), "</strong><p>",
                text(cat("summary.", verdict)), "</p><p>", markup_escaped(report_.device), "</p>");
    if (!report_.is_finished) {
      out_ +=
          cat("<p>", text("word.unfinished"), ": ", markup_escaped(report_.stop_reason), "</p>");
    }
    out_ += "</div>\n<table><tbody>\n";
    fact_row("word.suite", cat(report_.suite, ": ", report_.suite_description));
    fact_row("word.config", report_.config_file);
    fact_row("word.started", report_.started_utc);
    fact_row("word.finished", report_.finished_utc);
    fact_row("word.duration", duration_text(report_.seconds));
    fact_row("word.version", report_.version);
    fact_row("word.command", report_.command);
    close_table();
  }

  void write_scorecard() {
    heading("heading.scorecard", "scorecard");
    open_table({"column.name", "column.value", "column.note"});
    for (const ScoreLine& line : report_.scorecard) {
      out_ += cat("<tr><th scope=\"row\">", text(cat("score.", line.key)), "</th>",
                  cell(score_cell(line, language_)), cell(line.note, "dim"), "</tr>\n");
    }
    close_table();
  }

  void write_diagnosis() {
    heading("heading.diagnosis", "diagnosis");
    open_table({"column.what", "heading.evidence", "column.next_step"});
    for (const ScenarioResult& scenario : report_.scenarios) {
      for (const Advice& advice : scenario.advice) {
        out_ += cat("<tr>", cell(advice.what), cell(advice.evidence), cell(advice.next_step),
                    "</tr>\n");
      }
    }
    close_table();
  }

  void write_scenarios() {
    heading("heading.scenarios", "scenarios");
    open_table({"column.scenario", "column.verdict", "column.seconds", "column.reason"});
    for (const ScenarioResult& scenario : report_.scenarios) {
      const std::string verdict(verdict_name(scenario.verdict));
      const std::string name = markup_escaped(scenario.name);
      const std::string shown =
          is_detailed(scenario) ? cat("<a href=\"#s-", name, "\">", name, "</a>") : name;
      out_ += cat("<tr><th scope=\"row\">", shown, "</th><td class=\"", verdict, "\">",
                  text(cat("verdict.", verdict)), "</td>", cell(shown_number(scenario.seconds)),
                  cell(scenario.reason.empty() ? scenario_title(scenario.name, language_)
                                               : scenario.reason),
                  "</tr>\n");
    }
    close_table();
  }

  static bool is_detailed(const ScenarioResult& scenario) {
    return !scenario.checks.empty() || !scenario.facts.empty();
  }

  // Evidence is named as text with a relative link; a path that leaves the folder gets no link.
  static std::string evidence_link(const std::string& path) {
    const std::string shown = markup_escaped(path);
    for (const char letter : path) {
      const bool is_plain = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
                            (letter >= '0' && letter <= '9') || letter == '/' || letter == '_' ||
                            letter == '-' || letter == '.';
      if (!is_plain) return cat("<code>", shown, "</code>");
    }
    if (!path.starts_with("evidence/") || path.find("..") != std::string::npos) {
      return cat("<code>", shown, "</code>");
    }
    return cat("<a href=\"", shown, "\"><code>", shown, "</code></a>");
  }

  void write_check_row(const Check& check) {
    const bool is_finding = check.verdict == Verdict::kFail && !check.is_required;
    out_ += cat(
        "<tr><th scope=\"row\">", markup_escaped(check_title(check, language_)),
        "<br><code class=\"dim\">", markup_escaped(check.name), "</code></th>",
        cell(verdict_cell(check, language_), is_finding ? "finding" : verdict_name(check.verdict)),
        cell(kind_cell(check, language_), "kind"), cell(measured_cell(check)),
        cell(threshold_cell(check)), "<td>", markup_escaped(check.reason));
    for (const std::string& path : check.evidence) out_ += cat("<br>", evidence_link(path));
    out_ += "</td></tr>\n";
  }

  void write_checks(const ScenarioResult& scenario) {
    if (!is_detailed(scenario)) return;
    out_ += cat("<h2 id=\"s-", markup_escaped(scenario.name), "\">", markup_escaped(scenario.name),
                ": ", markup_escaped(scenario_title(scenario.name, language_)), "</h2>\n");
    if (!scenario.checks.empty()) {
      open_table({"column.check", "column.verdict", "column.kind", "column.measured",
                  "column.threshold", "column.reason"});
      for (const Check& check : scenario.checks) write_check_row(check);
      close_table();
    }
    if (scenario.facts.empty()) return;
    out_ += cat("<details><summary>", text("heading.measurements"), "</summary>\n");
    open_table({"column.name", "column.value", "column.note"});
    for (const Fact& fact : scenario.facts) {
      out_ += cat("<tr><th scope=\"row\"><code>", markup_escaped(fact.name), "</code></th>",
                  cell(fact_cell(fact)), cell(fact.note, "dim"), "</tr>\n");
    }
    close_table();
    out_ += "</details>\n";
  }

  void write_curves() {
    heading("heading.curves", "curves");
    for (const Plot& plot : make_plots(report_, language_, folder_)) out_ += draw_svg(plot);
  }

  void write_platform() {
    heading("heading.platform", "platform");
    std::string lines;
    for (const std::string& line : split(report_.platform_json, '\n')) {
      lines += markup_escaped(line) + "\n";
    }
    out_ += cat("<details><summary>", markup_escaped(report_.device), "</summary><pre>", lines,
                "</pre></details>\n");
  }

  void write_tail() {
    heading("heading.evidence", "evidence");
    out_ += cat("<p>", text("text.evidence"), "</p>\n");
    heading("heading.questions", "questions");
    out_ += cat("<p>", text("text.questions"), "</p>\n");
    if (language_ != Language::kEnglish) {
      out_ += cat("<p class=\"dim\">", text("text.reasons_english"), "</p>\n");
    }
    out_ += "</body></html>\n";
  }

  const Report& report_;
  Language language_;
  const std::string& folder_;
  std::string out_;
};

}  // namespace

std::string report_to_html(const Report& report, Language language, const std::string& folder) {
  return HtmlWriter(report, language, folder).write();
}

}  // namespace assay::harness
