// What each check says, by its name. Chinese as \u escapes: sources are ASCII.
#include "harness/report/strings.h"

namespace assay::harness::strings_detail {
namespace {

constexpr Entry kEntries[] = {
    {"check.evidence_readable", "What the trainer left can be read",
     "\u8bad\u7ec3\u7a0b\u5e8f\u7559\u4e0b\u7684\u6587\u4ef6\u53ef\u8bfb"},
    {"environment.gpu_usable", "A GPU that is present can be used",
     "\u5b58\u5728\u7684 GPU \u53ef\u4ee5\u4f7f\u7528"},
    {"environment.driver", "Driver is new enough (major version)",
     "\u9a71\u52a8\u7248\u672c\u8db3\u591f\u65b0\uff08\u4e3b\u7248\u672c\u53f7\uff09"},
    {"environment.gpu_architecture", "GPU architecture is new enough (sm)",
     "GPU \u67b6\u6784\u8db3\u591f\u65b0\uff08sm\uff09"},
    {"environment.trainer_loads", "The trainer starts and its libraries load",
     "\u8bad\u7ec3\u7a0b\u5e8f\u80fd\u542f\u52a8\uff0c\u5e93\u80fd\u52a0\u8f7d"},
    {"environment.same_build", "Harness and trainer are of one build",
     "\u9a8c\u6536\u7a0b\u5e8f\u4e0e\u8bad\u7ec3\u7a0b\u5e8f\u5c5e\u4e8e\u540c\u4e00"
     "\u6784\u5efa"},
    {"environment.trainer_uses_gpu", "The trainer trains one step on the GPU",
     "\u8bad\u7ec3\u7a0b\u5e8f\u80fd\u5728 GPU \u4e0a\u8bad\u7ec3\u4e00\u6b65"},
    {"environment.problems", "Nothing about the machine looks wrong",
     "\u673a\u5668\u6ca1\u6709\u53ef\u7591\u4e4b\u5904"},
    {"storage.durable_write", "Write, fsync and rename work in the output folder",
     "\u8f93\u51fa\u76ee\u5f55\u4e2d\u5199\u5165\u3001fsync\u3001\u6539\u540d\u5747"
     "\u6709\u6548"},
    {"storage.write_speed", "Sequential write speed with fsync",
     "\u5e26 fsync \u7684\u987a\u5e8f\u5199\u5165\u901f\u5ea6"},
    {"storage.checkpoint_verifies", "A real checkpoint is saved and verifies byte by byte",
     "\u771f\u5b9e\u68c0\u67e5\u70b9\u5df2\u4fdd\u5b58\u5e76\u9010\u5b57\u8282\u6821"
     "\u9a8c\u901a\u8fc7"},
    {"storage.save_time", "Time of one save", "\u5355\u6b21\u4fdd\u5b58\u7684\u65f6\u95f4"},
    {"storage.room", "Room for all checkpoints to come",
     "\u7a7a\u95f4\u8db3\u591f\u5b58\u653e\u672a\u6765\u6240\u6709\u68c0\u67e5\u70b9"},
    {"storage.inodes", "Inodes for all checkpoints to come",
     "inode \u8db3\u591f\u5b58\u653e\u672a\u6765\u6240\u6709\u68c0\u67e5\u70b9"},
    {"storage.not_root_disk", "Output does not lie on the root disk",
     "\u8f93\u51fa\u4e0d\u5728\u7cfb\u7edf\u76d8\u4e0a"},
    {"storage.disk_fill", "The disk is not nearly full",
     "\u78c1\u76d8\u6ca1\u6709\u63a5\u8fd1\u5199\u6ee1"},
    {"smoke.exit_codes", "Both command lines end with exit code 0",
     "\u4e24\u6761\u547d\u4ee4\u5747\u4ee5\u9000\u51fa\u7801 0 \u7ed3\u675f"},
    {"smoke.steps_once", "Steps 1 to 35 are recorded once each",
     "\u7b2c 1 \u5230 35 \u6b65\u5404\u8bb0\u5f55\u4e00\u6b21"},
    {"smoke.data_read", "Data were read: samples are named and change",
     "\u8bfb\u53d6\u4e86\u6570\u636e\uff1a\u6837\u672c\u6709\u8bb0\u5f55\u4e14\u6709"
     "\u53d8\u5316"},
    {"smoke.forward", "Forward happened: finite losses, measured time",
     "\u5b8c\u6210\u524d\u5411\u8ba1\u7b97\uff1a\u635f\u5931\u6709\u9650\uff0c\u65f6"
     "\u95f4\u53ef\u6d4b"},
    {"smoke.backward", "Backward happened: gradient norms above 0",
     "\u5b8c\u6210\u53cd\u5411\u8ba1\u7b97\uff1a\u68af\u5ea6\u8303\u6570\u5927\u4e8e"
     " 0"},
    {"smoke.weights_changed", "The update happened: weights changed",
     "\u5b8c\u6210\u66f4\u65b0\uff1a\u6743\u91cd\u5df2\u6539\u53d8"},
    {"smoke.checkpoints_verify", "The saves happened: checkpoints verify",
     "\u5b8c\u6210\u4fdd\u5b58\uff1a\u68c0\u67e5\u70b9\u6821\u9a8c\u901a\u8fc7"},
    {"smoke.result", "result.json says the target was reached",
     "result.json \u8868\u660e\u5df2\u8fbe\u5230\u76ee\u6807"},
    {"timing.exit_codes", "Every timing run ends with exit code 0",
     "\u6bcf\u6b21\u8ba1\u65f6\u8fd0\u884c\u5747\u4ee5\u9000\u51fa\u7801 0 \u7ed3"
     "\u675f"},
    {"timing.steady_window", "Every run reaches a steady window",
     "\u6bcf\u6b21\u8fd0\u884c\u90fd\u8fdb\u5165\u7a33\u5b9a\u533a\u95f4"},
    {"timing.phases_add_up", "The phases add up to the step",
     "\u5404\u9636\u6bb5\u4e4b\u548c\u7b49\u4e8e\u5355\u6b65\u65f6\u95f4"},
    {"timing.other_share", "Time outside all named phases",
     "\u4e0d\u5c5e\u4e8e\u4efb\u4f55\u9636\u6bb5\u7684\u65f6\u95f4"},
    {"timing.data_wait", "Waiting for data against the forward pass",
     "\u6570\u636e\u7b49\u5f85\u4e0e\u524d\u5411\u8ba1\u7b97\u4e4b\u6bd4"},
    {"timing.run_spread", "Equal runs agree on the step time",
     "\u76f8\u540c\u8fd0\u884c\u7684\u5355\u6b65\u65f6\u95f4\u4e00\u81f4"},
    {"timing.wall_accounted", "Wall time is explained by start-up, steps and evaluation",
     "\u603b\u65f6\u95f4\u53ef\u7531\u542f\u52a8\u3001\u8bad\u7ec3\u6b65\u548c\u8bc4"
     "\u4f30\u89e3\u91ca"},
    {"timing.save_share", "Share of the run spent on saves",
     "\u4fdd\u5b58\u5360\u8fd0\u884c\u65f6\u95f4\u7684\u6bd4\u4f8b"},
    {"timing.quiet_machine", "Other programs leave the CPUs alone",
     "\u5176\u4ed6\u7a0b\u5e8f\u6ca1\u6709\u5360\u7528 CPU"},
    {"timing.cpu_utilisation", "CPU utilisation while stepping",
     "\u8bad\u7ec3\u65f6\u7684 CPU \u5229\u7528\u7387"},
    {"resume.control_runs", "The control runs reach their target",
     "\u5bf9\u7167\u8fd0\u884c\u8fbe\u5230\u76ee\u6807"},
    {"resume.kills_landed", "Every planned kill hit a running trainer",
     "\u6bcf\u6b21\u8ba1\u5212\u7684\u7ec8\u6b62\u90fd\u547d\u4e2d\u4e86\u8fd0\u884c"
     "\u4e2d\u7684\u8bad\u7ec3"},
    {"resume.resumed_runs_end", "Every resumed run reaches its target",
     "\u6bcf\u6b21\u6062\u590d\u540e\u7684\u8fd0\u884c\u90fd\u8fbe\u5230\u76ee\u6807"},
    {"resume.same_as_uninterrupted", "Resumed runs equal the uninterrupted one",
     "\u6062\u590d\u540e\u7684\u8fd0\u884c\u4e0e\u672a\u4e2d\u65ad\u7684\u8fd0\u884c"
     "\u76f8\u540c"},
    {"resume.steps_once", "Every step is recorded once after a resume",
     "\u6062\u590d\u540e\u6bcf\u4e00\u6b65\u53ea\u8bb0\u5f55\u4e00\u6b21"},
    {"resume.samples_once", "Every sample is used once an epoch",
     "\u6bcf\u4e2a\u6837\u672c\u6bcf\u8f6e\u53ea\u4f7f\u7528\u4e00\u6b21"},
    {"resume.sigterm_saves", "SIGTERM saves the last step and ends with 143",
     "SIGTERM \u4f1a\u4fdd\u5b58\u6700\u540e\u4e00\u6b65\u5e76\u4ee5 143 \u9000"
     "\u51fa"},
    {"resume.lost_steps", "Steps lost by a kill",
     "\u7ec8\u6b62\u9020\u6210\u7684\u6b65\u6570\u635f\u5931"},
    {"resume.restart_seconds", "Time from the restart to the first new step",
     "\u4ece\u91cd\u542f\u5230\u7b2c\u4e00\u4e2a\u65b0\u6b65\u7684\u65f6\u95f4"},
    {"equivalence.exit_codes", "Every run ends with exit code 0",
     "\u6bcf\u6b21\u8fd0\u884c\u5747\u4ee5\u9000\u51fa\u7801 0 \u7ed3\u675f"},
    {"equivalence.repeat_bit_equal", "The same run twice is bit-equal",
     "\u540c\u4e00\u8fd0\u884c\u4e24\u6b21\u7ed3\u679c\u9010\u4f4d\u76f8\u540c"},
    {"equivalence.workers_bit_equal", "The number of loader workers changes no bit",
     "\u52a0\u8f7d\u7ebf\u7a0b\u6570\u4e0d\u6539\u53d8\u4efb\u4f55\u4e00\u4f4d"},
    {"equivalence.accumulation_fp64", "Accumulation equals one big batch (fp64)",
     "\u68af\u5ea6\u7d2f\u79ef\u7b49\u4e8e\u4e00\u4e2a\u5927\u6279\u6b21\uff08fp64"
     "\uff09"},
    {"equivalence.accumulation_fp32", "Accumulation equals one big batch (fp32)",
     "\u68af\u5ea6\u7d2f\u79ef\u7b49\u4e8e\u4e00\u4e2a\u5927\u6279\u6b21\uff08fp32"
     "\uff09"},
    {"equivalence.evaluation_once", "Evaluation counts every held-out sample once",
     "\u8bc4\u4f30\u5bf9\u6bcf\u4e2a\u7559\u51fa\u6837\u672c\u53ea\u8ba1\u4e00\u6b21"},
};

}  // namespace

std::span<const Entry> check_entries() { return kEntries; }

}  // namespace assay::harness::strings_detail
