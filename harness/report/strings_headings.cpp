// Headings, verdict words, scenarios, scores and plots. Chinese as \u escapes: sources are ASCII.
#include "harness/report/strings.h"

namespace assay::harness::strings_detail {
namespace {

constexpr Entry kEntries[] = {
    {"heading.title", "Acceptance report", "\u9a8c\u6536\u62a5\u544a"},
    {"heading.verdict", "Verdict", "\u7ed3\u8bba"},
    {"heading.scorecard", "Scorecard", "\u8bc4\u5206\u5361"},
    {"heading.scenarios", "Scenarios", "\u573a\u666f"},
    {"heading.checks", "Checks", "\u68c0\u67e5\u9879"},
    {"heading.diagnosis", "Diagnosis", "\u8bca\u65ad"},
    {"heading.measurements", "Measurements", "\u6d4b\u91cf\u503c"},
    {"heading.curves", "Curves", "\u66f2\u7ebf"},
    {"heading.platform", "Platform", "\u5e73\u53f0"},
    {"heading.evidence", "Evidence", "\u8bc1\u636e"},
    {"heading.questions", "Questions a program cannot answer",
     "\u7a0b\u5e8f\u65e0\u6cd5\u56de\u7b54\u7684\u95ee\u9898"},
    {"column.scenario", "Scenario", "\u573a\u666f"},
    {"column.check", "Check", "\u68c0\u67e5"},
    {"column.verdict", "Verdict", "\u7ed3\u8bba"},
    {"column.kind", "Kind", "\u7c7b\u522b"},
    {"column.measured", "Measured", "\u5b9e\u6d4b\u503c"},
    {"column.threshold", "Threshold", "\u9608\u503c"},
    {"column.reason", "Reason", "\u539f\u56e0"},
    {"column.seconds", "Seconds", "\u79d2"},
    {"column.name", "Name", "\u540d\u79f0"},
    {"column.value", "Value", "\u6570\u503c"},
    {"column.note", "How it was measured", "\u6d4b\u91cf\u65b9\u6cd5"},
    {"column.what", "What", "\u73b0\u8c61"},
    {"column.next_step", "Next step", "\u4e0b\u4e00\u6b65"},
    {"word.required", "required", "\u5fc5\u9700"},
    {"word.advisory", "advisory", "\u5efa\u8bae"},
    {"word.finding", "finding", "\u63d0\u793a"},
    {"word.suite", "Suite", "\u5957\u4ef6"},
    {"word.device", "Device", "\u8bbe\u5907"},
    {"word.started", "Started", "\u5f00\u59cb\u65f6\u95f4"},
    {"word.finished", "Finished", "\u7ed3\u675f\u65f6\u95f4"},
    {"word.duration", "Duration", "\u7528\u65f6"},
    {"word.version", "Version", "\u7248\u672c"},
    {"word.command", "Command", "\u547d\u4ee4"},
    {"word.config", "Configuration", "\u914d\u7f6e"},
    {"word.unfinished", "This acceptance is not finished",
     "\u672c\u6b21\u9a8c\u6536\u5c1a\u672a\u5b8c\u6210"},
    {"word.no_measurement", "not measured", "\u672a\u6d4b\u91cf"},
    {"verdict.pass", "pass", "\u901a\u8fc7"},
    {"verdict.fail", "fail", "\u672a\u901a\u8fc7"},
    {"verdict.could_not_run", "could not run", "\u65e0\u6cd5\u6267\u884c"},
    {"summary.pass",
     "Every required check of the scenarios below passed on this machine, by real tr"
     "aining.",
     "\u4e0b\u5217\u573a\u666f\u7684\u6240\u6709\u5fc5\u9700\u68c0\u67e5\u5747\u5728"
     "\u672c\u673a\u4ee5\u771f\u5b9e\u8bad\u7ec3\u901a\u8fc7\u3002"},
    {"summary.fail",
     "A required check failed: see the lines marked fail below before money goes in.",
     "\u6709\u5fc5\u9700\u7684\u68c0\u67e5\u672a\u901a\u8fc7\uff1a\u6295\u5165\u8d39"
     "\u7528\u4e4b\u524d\u8bf7\u5148\u67e5\u770b\u4e0b\u9762\u6807\u4e3a\u672a\u901a"
     "\u8fc7\u7684\u6761\u76ee\u3002"},
    {"summary.could_not_run",
     "No verdict is possible yet: something that is required could not run.",
     "\u6682\u65f6\u65e0\u6cd5\u5f97\u51fa\u7ed3\u8bba\uff1a\u6709\u5fc5\u9700\u7684"
     "\u9879\u76ee\u672a\u80fd\u6267\u884c\u3002"},
    {"text.evidence",
     "Run folders, logs and raw samples lie under evidence/; every file's SHA-256 is"
     " in SHA256SUMS. Check a copy with: assay verify DIR, or sha256sum -c SHA256SUM"
     "S. Judged checkpoints are kept as manifests and digests.",
     "\u8fd0\u884c\u76ee\u5f55\u3001\u65e5\u5fd7\u548c\u539f\u59cb\u6837\u672c\u4f4d"
     "\u4e8e evidence/\uff1b\u6bcf\u4e2a\u6587\u4ef6\u7684 SHA-256 \u8bb0\u5f55"
     "\u5728 SHA256SUMS \u4e2d\u3002\u68c0\u67e5\u526f\u672c\uff1aassay verify DIR "
     "\u6216 sha256sum -c SHA256SUMS\u3002\u5df2\u8bc4\u5224\u7684\u68c0\u67e5\u70b9"
     "\u53ea\u4fdd\u7559\u6e05\u5355\u548c\u6458\u8981\u3002"},
    {"text.questions",
     "How is a stopped machine billed? How long are its files kept after shutdown? W"
     "ho pays for reruns? Ask the provider; no measurement here can tell.",
     "\u505c\u673a\u540e\u5982\u4f55\u8ba1\u8d39\uff1f\u5173\u673a\u540e\u6587\u4ef6"
     "\u4fdd\u7559\u591a\u4e45\uff1f\u91cd\u8dd1\u7684\u8d39\u7528\u7531\u8c01\u627f"
     "\u62c5\uff1f\u8bf7\u8be2\u95ee\u4f9b\u5e94\u5546\uff1b\u8fd9\u91cc\u7684\u6d4b"
     "\u91cf\u65e0\u6cd5\u56de\u7b54\u3002"},
    {"text.reasons_english", "Reasons and measurements are in English.",
     "\u539f\u56e0\u4e0e\u6d4b\u91cf\u8bf4\u660e\u4e3a\u82f1\u6587\u3002"},
    {"score.finished_stably", "Finished the target stably", "\u7a33\u5b9a\u5b8c\u6210\u76ee\u6807"},
    {"score.peak_memory", "Peak memory", "\u5185\u5b58\u5cf0\u503c"},
    {"score.memory_headroom", "Memory headroom", "\u5185\u5b58\u4f59\u91cf"},
    {"score.step_time", "Step time (median)",
     "\u5355\u6b65\u65f6\u95f4\uff08\u4e2d\u4f4d\u6570\uff09"},
    {"score.mean_utilisation", "Mean utilisation", "\u5e73\u5747\u5229\u7528\u7387"},
    {"score.read_wait", "Read wait a step (median)",
     "\u6bcf\u6b65\u8bfb\u53d6\u7b49\u5f85\uff08\u4e2d\u4f4d\u6570\uff09"},
    {"score.save_time", "Save time", "\u4fdd\u5b58\u65f6\u95f4"},
    {"score.resume_result", "Resume result", "\u6062\u590d\u7ed3\u679c"},
    {"score.error_rate", "Error rate", "\u9519\u8bef\u7387"},
    {"plot.loss", "Training loss", "\u8bad\u7ec3\u635f\u5931"},
    {"plot.step_time", "Step time", "\u5355\u6b65\u65f6\u95f4"},
    {"plot.phases", "Phases of a step, stacked",
     "\u5355\u6b65\u5404\u9636\u6bb5\uff08\u5806\u53e0\uff09"},
    {"axis.step", "step", "\u6b65"},
    {"axis.loss", "loss (mean over the global batch)",
     "\u635f\u5931\uff08\u5168\u5c40\u6279\u6b21\u5e73\u5747\uff09"},
    {"axis.milliseconds", "milliseconds", "\u6beb\u79d2"},
    {"plot.no_data", "no data: the metrics file is missing or empty",
     "\u65e0\u6570\u636e\uff1a\u6307\u6807\u6587\u4ef6\u7f3a\u5931\u6216\u4e3a\u7a7a"},
    {"scenario.environment", "What this machine is, and whether the trainer starts on it",
     "\u672c\u673a\u73af\u5883\uff0c\u4ee5\u53ca\u8bad\u7ec3\u7a0b\u5e8f\u80fd\u5426"
     "\u542f\u52a8"},
    {"scenario.storage", "Durable writes, room and speed for the checkpoints to come",
     "\u6301\u4e45\u5199\u5165\u3001\u672a\u6765\u68c0\u67e5\u70b9\u6240\u9700\u7684"
     "\u7a7a\u95f4\u4e0e\u901f\u5ea6"},
    {"scenario.smoke", "30 steps with saves, then a resume to 35",
     "\u8bad\u7ec3 30 \u6b65\u5e76\u4fdd\u5b58\uff0c\u7136\u540e\u6062\u590d\u5230 3"
     "5 \u6b65"},
    {"scenario.timing", "Step time, its phases, memory and start-up",
     "\u5355\u6b65\u65f6\u95f4\u53ca\u5176\u5404\u9636\u6bb5\u3001\u5185\u5b58\u4e0e"
     "\u542f\u52a8"},
    {"scenario.data", "Is the device waiting for data",
     "\u8bbe\u5907\u662f\u5426\u5728\u7b49\u5f85\u6570\u636e"},
    {"scenario.transfer", "Copies between host and device",
     "\u4e3b\u673a\u4e0e\u8bbe\u5907\u4e4b\u95f4\u7684\u4f20\u8f93"},
    {"scenario.scale", "One size raised at a time", "\u9010\u9879\u653e\u5927\u89c4\u6a21"},
    {"scenario.resume", "Killed and resumed runs against an uninterrupted one",
     "\u88ab\u7ec8\u6b62\u5e76\u6062\u590d\u7684\u8fd0\u884c\u4e0e\u672a\u4e2d\u65ad"
     "\u8fd0\u884c\u7684\u6bd4\u8f83"},
    {"scenario.faults", "Full disks, torn checkpoints, hung ranks, NaN",
     "\u78c1\u76d8\u5199\u6ee1\u3001\u68c0\u67e5\u70b9\u635f\u574f\u3001\u8fdb\u7a0b"
     "\u6302\u8d77\u3001NaN"},
    {"scenario.distributed", "Several ranks", "\u591a\u8fdb\u7a0b\u8bad\u7ec3"},
    {"scenario.precision", "bf16 and fp16 against fp32",
     "bf16\u3001fp16 \u4e0e fp32 \u7684\u6bd4\u8f83"},
    {"scenario.memory", "Memory need and the out-of-memory ladder",
     "\u5185\u5b58\u9700\u6c42\u4e0e\u663e\u5b58\u4e0d\u8db3\u65f6\u7684\u5e94\u5bf9"},
    {"scenario.equivalence", "The same mathematics in another shape gives the same run",
     "\u540c\u6837\u7684\u6570\u5b66\uff0c\u6362\u4e00\u79cd\u5f62\u5f0f\uff0c\u7ed3"
     "\u679c\u76f8\u540c"},
    {"scenario.loss_curve", "Does the loss fall as it should",
     "\u635f\u5931\u662f\u5426\u6b63\u5e38\u4e0b\u964d"},
    {"scenario.soak", "A long run: leaks, throttling, drift",
     "\u957f\u65f6\u95f4\u8fd0\u884c\uff1a\u6cc4\u6f0f\u3001\u964d\u9891\u3001\u6f02"
     "\u79fb"},
    {"scenario.selftest", "Planted faults are caught",
     "\u690d\u5165\u7684\u6545\u969c\u80fd\u88ab\u53d1\u73b0"},
};

}  // namespace

std::span<const Entry> heading_entries() { return kEntries; }

}  // namespace assay::harness::strings_detail
