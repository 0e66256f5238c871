#include "trainer/distributed/replicas.h"

#include <algorithm>
#include <map>

#include <torch/torch.h>

#include "base/text.h"

namespace assay::distributed {
namespace {

// The tensor's bits as words, summed modulo 2^64.
at::Tensor bit_sum(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.detach().contiguous().reshape({-1});
  switch (flat.element_size()) {
    case 8:
      return flat.view(torch::kInt64).sum();
    case 4:
      return flat.view(torch::kInt32).sum(torch::kInt64);
    case 2:
      return flat.view(torch::kInt16).sum(torch::kInt64);
    default:
      return flat.view(torch::kUInt8).sum(torch::kInt64);
  }
}

std::string sums_text(const at::Tensor& sums) {
  const at::Tensor host = sums.cpu();
  std::vector<std::string> words;
  for (int64_t i = 0; i < host.numel(); ++i) words.push_back(cat(host[i].item<int64_t>()));
  return join(words, " ");
}

std::vector<int64_t> odd_ranks(const std::vector<std::string>& values) {
  std::map<std::string, size_t> counts;
  for (const std::string& value : values) ++counts[value];
  // What most ranks have; rank 0's where no value leads.
  std::string usual = values.front();
  for (const auto& [value, count] : counts) {
    if (count > counts[usual]) usual = value;
  }
  std::vector<int64_t> odd;
  for (size_t r = 0; r < values.size(); ++r) {
    if (values[r] != usual) odd.push_back(static_cast<int64_t>(r));
  }
  return odd;
}

}  // namespace

std::vector<ReplicaDifference> compare_replicas(World& world, const std::vector<std::string>& names,
                                                const std::vector<at::Tensor>& tensors) {
  if (world.size() == 1 || tensors.empty()) return {};
  std::vector<at::Tensor> list;
  for (const at::Tensor& tensor : tensors) list.push_back(bit_sum(tensor));
  const at::Tensor sums = torch::stack(list);
  // The greatest value and, as the greatest of the complements, the least.
  const at::Tensor extremes = torch::cat({sums, sums.bitwise_not()});
  world.all_reduce(extremes, Reduction::kMax);
  const int64_t count = sums.numel();
  const at::Tensor is_equal =
      extremes.narrow(0, 0, count).eq(extremes.narrow(0, count, count).bitwise_not()).cpu();
  if (is_equal.all().item<bool>()) return {};
  std::vector<std::vector<std::string>> by_rank;
  for (const std::string& text : world.gather_texts("replica sums", sums_text(sums))) {
    by_rank.push_back(split(text, ' '));
  }
  std::vector<ReplicaDifference> differences;
  for (size_t i = 0; i < names.size(); ++i) {
    if (is_equal[static_cast<int64_t>(i)].item<bool>()) continue;
    std::vector<std::string> values;
    for (const auto& row : by_rank) values.push_back(row.at(i));
    differences.push_back({names[i], odd_ranks(values)});
  }
  return differences;
}

std::string differences_text(const World& world,
                             const std::vector<ReplicaDifference>& differences) {
  constexpr size_t kShown = 3;
  std::vector<std::string> lines;
  for (size_t i = 0; i < std::min(kShown, differences.size()); ++i) {
    std::vector<std::string> who;
    for (const int64_t rank : differences[i].ranks) {
      who.push_back(rank_text(world.ranks()[static_cast<size_t>(rank)]));
    }
    lines.push_back(cat(differences[i].tensor, " differs on ", join(who, ", ")));
  }
  const size_t hidden = differences.size() - lines.size();
  return cat(join(lines, "; "), hidden == 0 ? "" : cat(" (and ", hidden, " more tensors)"));
}

}  // namespace assay::distributed
