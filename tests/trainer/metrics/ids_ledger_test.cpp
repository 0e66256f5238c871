#include "trainer/metrics/ids_ledger.h"

#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "base/digest.h"
#include "base/text.h"
#include "trainer/metrics/step_record.h"

namespace assay::metrics {
namespace {

TEST(IdsLedger, WritesOneLineAnUpdate) {
  const TemporaryFolder folder;
  IdsLedger ledger(folder.path(), 3);
  ledger.append(1, 0, std::vector<int64_t>{7, 0, 5000000000});
  ledger.append(2, 1, {});
  ledger.sync();
  EXPECT_EQ(read_file(join_path(folder.path(), "ids-rank3.jsonl")),
            "{\"step\":1,\"epoch\":0,\"ids\":[7,0,5000000000]}\n"
            "{\"step\":2,\"epoch\":1,\"ids\":[]}\n");
}

TEST(IdsLedger, CanBeCutAtACheckpoint) {
  const TemporaryFolder folder;
  IdsLedger ledger(folder.path(), 0);
  for (int64_t step = 1; step <= 4; ++step) ledger.append(step, 0, std::vector<int64_t>{step});
  const std::string text = read_file(join_path(folder.path(), ids_file_name(0)));
  const SplitLog split_log = split_log_at_step(text, 2);
  EXPECT_EQ(split(split_log.kept, '\n').size(), 3u);  // two lines and what follows the last newline
  EXPECT_EQ(split_log.kept + split_log.later, text);
}

TEST(IdsDigest, IsTheSha256OfLittleEndianIds) {
  const std::string bytes("\x01\0\0\0\0\0\0\0\x00\x02\0\0\0\0\0\0", 16);
  EXPECT_EQ(ids_digest(std::vector<int64_t>{1, 512}), sha256_hex(bytes));
  EXPECT_EQ(ids_digest({}), sha256_hex(""));
}

TEST(IdsDigest, DependsOnOrderAndCount) {
  const std::string digest = ids_digest(std::vector<int64_t>{1, 2});
  EXPECT_NE(digest, ids_digest(std::vector<int64_t>{2, 1}));
  EXPECT_NE(digest, ids_digest(std::vector<int64_t>{1, 2, 0}));
}

}  // namespace
}  // namespace assay::metrics
