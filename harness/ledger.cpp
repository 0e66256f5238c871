#include "harness/ledger.h"

#include <algorithm>
#include <map>

#include "base/text.h"

namespace assay::harness {
namespace {

constexpr size_t kFindingsShown = 20;  // enough to see the pattern; the count is in the message

class LedgerCheck {
 public:
  LedgerCheck(std::span<const IdsLine> lines, const LedgerRules& rules)
      : lines_(lines), rules_(rules) {}

  Ledger run() {
    int64_t expected_step = rules_.first_step;
    for (const IdsLine& line : lines_) {
      if (line.step != expected_step) {
        add(line.step, line.epoch,
            cat("step ", line.step, " follows where step ", expected_step, " was expected"));
      }
      expected_step = line.step + 1;
      follow_epoch(line);
      for (const int64_t id : line.ids) use(id, line);
    }
    if (rules_.last_step > 0 && expected_step != rules_.last_step + 1) {
      add(expected_step, epoch_,
          cat("the ledger ends at step ", expected_step - 1, ", expected ", rules_.last_step));
    }
    if (rules_.train_samples > 0 && static_cast<int64_t>(used_.size()) == rules_.train_samples) {
      ++ledger_.whole_epochs;  // the last epoch ended exactly with the run
    }
    ledger_.steps = static_cast<int64_t>(lines_.size());
    return ledger_;
  }

 private:
  void add(int64_t step, int64_t epoch, std::string problem) {
    if (ledger_.findings.size() < kFindingsShown) {
      ledger_.findings.push_back({step, epoch, std::move(problem)});
    }
  }

  void follow_epoch(const IdsLine& line) {
    if (ledger_.samples == 0 && used_.empty()) epoch_ = line.epoch;
    if (line.epoch == epoch_) return;
    if (line.epoch != epoch_ + 1) {
      add(line.step, line.epoch, cat("epoch ", line.epoch, " follows epoch ", epoch_));
    }
    close_epoch();
    epoch_ = line.epoch;
    used_.clear();
  }

  // An epoch that was left behind must hold every sample; ids are 0..n-1 within the split.
  void close_epoch() {
    ++ledger_.whole_epochs;
    if (used_.empty() || rules_.drops_last) return;
    const int64_t size =
        rules_.train_samples > 0 ? rules_.train_samples : used_.rbegin()->first + 1;
    if (static_cast<int64_t>(used_.size()) == size) return;
    int64_t missing = 0;
    for (const auto& [id, step] : used_) {
      if (id != missing) break;
      ++missing;
    }
    add(0, epoch_,
        cat("epoch ", epoch_, " used ", used_.size(), " of ", size,
            " samples; the first one missing is ", missing));
  }

  void use(int64_t id, const IdsLine& line) {
    ++ledger_.samples;
    if (id < 0 || (rules_.train_samples > 0 && id >= rules_.train_samples)) {
      add(line.step, line.epoch,
          cat("sample ", id, " lies outside 0..", std::max<int64_t>(rules_.train_samples - 1, 0)));
    }
    const auto [place, is_new] = used_.emplace(id, line.step);
    if (!is_new) {
      add(line.step, line.epoch,
          cat("sample ", id, " is used twice in epoch ", line.epoch, ": at steps ", place->second,
              " and ", line.step));
    }
  }

  std::span<const IdsLine> lines_;
  const LedgerRules& rules_;
  Ledger ledger_;
  int64_t epoch_ = 0;
  std::map<int64_t, int64_t> used_;  // sample id -> step, of the current epoch
};

}  // namespace

Ledger check_ledger(std::span<const IdsLine> lines, const LedgerRules& rules) {
  return LedgerCheck(lines, rules).run();
}

std::string first_ledger_difference(std::span<const IdsLine> left, std::span<const IdsLine> right) {
  const size_t common = std::min(left.size(), right.size());
  for (size_t i = 0; i < common; ++i) {
    if (left[i].step != right[i].step) {
      return cat("line ", i + 1, " is of step ", left[i].step, " and ", right[i].step);
    }
    if (left[i].ids == right[i].ids) continue;
    const auto [a, b] = std::mismatch(left[i].ids.begin(), left[i].ids.end(), right[i].ids.begin(),
                                      right[i].ids.end());
    return cat("step ", left[i].step, " place ", a - left[i].ids.begin(), ": sample ",
               a == left[i].ids.end() ? std::string("none") : cat(*a), " and ",
               b == right[i].ids.end() ? std::string("none") : cat(*b));
  }
  return "";
}

}  // namespace assay::harness
