#include "trainer/metrics/ids_ledger.h"

#include <array>

#include "base/digest.h"
#include "base/text.h"

namespace assay::metrics {

std::string ids_digest(std::span<const int64_t> ids) {
  Sha256 digest;
  for (const int64_t id : ids) {
    std::array<unsigned char, sizeof(id)> bytes;
    for (size_t i = 0; i < bytes.size(); ++i) {
      bytes[i] = static_cast<unsigned char>(static_cast<uint64_t>(id) >> (8 * i));
    }
    digest.update(bytes.data(), bytes.size());
  }
  return digest.hex();
}

std::string ids_file_name(int64_t rank) { return cat("ids-rank", rank, ".jsonl"); }

IdsLedger::IdsLedger(const std::string& run_dir, int64_t rank)
    : file_(join_path(run_dir, ids_file_name(rank)), "ids") {}

void IdsLedger::append(int64_t step, int64_t epoch, std::span<const int64_t> ids) {
  std::string line = cat("{\"step\":", step, ",\"epoch\":", epoch, ",\"ids\":[");
  for (size_t i = 0; i < ids.size(); ++i) {
    if (i > 0) line += ',';
    line += std::to_string(ids[i]);
  }
  file_.append(line + "]}\n");
}

void IdsLedger::sync() { file_.sync(); }

}  // namespace assay::metrics
