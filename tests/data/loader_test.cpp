#include "data/loader.h"

#include <cstdlib>
#include <optional>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/data/armed_faults.h"
#include "tests/data/index_coded.h"
#include "tests/data/thrown_message.h"

namespace assay::data {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Everything a batch carries, as text: two equal streams are equal byte by byte.
std::string transcript_of(const Batch& batch) {
  std::string text = cat("e", batch.window.epoch, " w", batch.window.first, "+", batch.window.count,
                         " m", batch.micro_step, "/", batch.num_micro_steps, " v",
                         batch.valid_targets, "/", batch.step_valid_targets, " next ",
                         batch.window.next.epoch, ":", batch.window.next.samples_in_epoch, " ids");
  for (const int64_t id : batch.ids) text += cat(" ", id);
  text += " features " + hex_encode({batch.features(), batch.feature_bytes()}) + " targets";
  for (size_t i = 0; i < 2 * batch.ids.size(); ++i) text += cat(" ", batch.targets()[i]);
  return text + "\n";
}

SamplerConfig sampler_config() {
  return {.dataset_size = 23,
          .micro_batch_size = 3,
          .grad_accum_steps = 2,
          .world_size = 2,
          .rank = 1,
          .seed = 3};
}

std::string stream_of(const LoaderConfig& config, const DataPosition& position, int num_batches) {
  const IndexCoded dataset(23);
  const Sampler sampler(sampler_config());
  DataLoader loader(dataset, sampler, config);
  loader.start(position);
  std::string text;
  for (int i = 0; i < num_batches; ++i) text += transcript_of(loader.next());
  return text;
}

// Counts what is allocated and released; allocations beyond `limit` fail.
class CountedMemory : public HostMemory {
 public:
  void* allocate(size_t bytes) override {
    if (num_allocated == limit) throw std::bad_alloc();
    ++num_allocated;
    bytes_allocated += bytes;
    return ordinary_memory().allocate(bytes);
  }
  void release(void* pointer, size_t bytes) override {
    bytes_allocated -= bytes;
    ordinary_memory().release(pointer, bytes);
  }
  int64_t num_allocated = 0;
  size_t bytes_allocated = 0;
  int64_t limit = 1000;
};

TEST(DataLoader, FillsFeaturesAndTargetsOfTheIds) {
  const IndexCoded dataset(300);
  const Sampler sampler({.dataset_size = 300, .micro_batch_size = 4});
  DataLoader loader(dataset, sampler, {.num_workers = 2});
  loader.start({});
  const Batch batch = loader.next();
  ASSERT_EQ(batch.ids.size(), 4U);
  EXPECT_EQ(batch.feature_bytes(), 16U);
  for (size_t i = 0; i < 4; ++i) {
    const int64_t id = batch.ids[i];
    EXPECT_EQ(batch.features()[4 * i], static_cast<unsigned char>(id));
    EXPECT_EQ(batch.features()[4 * i + 1], static_cast<unsigned char>(id >> 8));
    EXPECT_EQ(batch.targets()[2 * i], id);
    EXPECT_EQ(batch.targets()[2 * i + 1], -id);
  }
}

TEST(DataLoader, GivesTheSameStreamForEveryWorkerCount) {
  const std::string reference = stream_of({.num_workers = 0}, {}, 40);
  EXPECT_THAT(reference, HasSubstr("e9 "));  // the stream crosses many epochs
  for (const int64_t num_workers : {1, 2, 4, 9}) {
    for (const int64_t prefetch_factor : {1, 3}) {
      EXPECT_EQ(stream_of({num_workers, prefetch_factor}, {}, 40), reference)
          << num_workers << " workers, prefetch " << prefetch_factor;
    }
  }
}

TEST(DataLoader, ContinuesEqualFromThePositionAfterEveryStep) {
  const IndexCoded dataset(23);
  const Sampler sampler(sampler_config());
  DataLoader whole(dataset, sampler, {.num_workers = 1});
  whole.start({});
  std::vector<std::string> batches;
  std::vector<DataPosition> behind;  // position after the batch's step, if it ends the step
  std::vector<size_t> starts;
  for (size_t i = 0; i < 30; ++i) {
    const Batch batch = whole.next();
    batches.push_back(transcript_of(batch));
    if (batch.micro_step + 1 < batch.num_micro_steps) continue;
    behind.push_back(batch.window.next);
    starts.push_back(i + 1);
  }
  ASSERT_GT(starts.size(), 10U);
  DataLoader resumed(dataset, sampler, {.num_workers = 2});
  for (size_t k = 0; k < starts.size(); ++k) {
    resumed.start(behind[k]);  // also: restart in the middle of everything, many times
    for (size_t i = starts[k]; i < batches.size(); ++i) {
      ASSERT_EQ(transcript_of(resumed.next()), batches[i]) << "from step " << k;
    }
  }
}

TEST(DataLoader, AllocatesItsSlotsOnce) {
  const IndexCoded dataset(50);
  const Sampler sampler({.dataset_size = 50, .micro_batch_size = 16});
  CountedMemory memory;
  {
    DataLoader loader(dataset, sampler, {.num_workers = 3, .prefetch_factor = 2}, memory);
    EXPECT_EQ(memory.num_allocated, 6);
    EXPECT_EQ(loader.slot_bytes(), memory.bytes_allocated);
    EXPECT_EQ(loader.slot_bytes(), 6U * (64 + 16 * 2 * sizeof(int64_t)));
    for (int round = 0; round < 3; ++round) {
      loader.start({});
      for (int i = 0; i < 20; ++i) loader.next();
    }
    EXPECT_EQ(memory.num_allocated, 6);
  }
  EXPECT_EQ(memory.bytes_allocated, 0U);
}

TEST(DataLoader, NeverReadsFurtherAheadThanItsSlots) {
  const IndexCoded dataset(1000);
  const Sampler sampler({.dataset_size = 1000, .micro_batch_size = 1});
  DataLoader loader(dataset, sampler, {.num_workers = 2, .prefetch_factor = 2});
  loader.start({});
  while (loader.ready_batches() < 4) std::this_thread::yield();
  EXPECT_EQ(dataset.num_reads, 4);
  loader.next();
  while (loader.ready_batches() < 4) std::this_thread::yield();
  EXPECT_EQ(dataset.num_reads, 5);
}

TEST(DataLoader, StopsWhileWorkersWaitForSlots) {
  const IndexCoded dataset(100);
  const Sampler sampler({.dataset_size = 100, .micro_batch_size = 2});
  for (int round = 0; round < 50; ++round) {
    DataLoader loader(dataset, sampler, {.num_workers = 4, .prefetch_factor = 1});
    loader.start({});
    if (round % 2 == 0) loader.next();
  }
}

TEST(DataLoader, LetsBatchesOutliveIt) {
  CountedMemory memory;
  {
    std::optional<Batch> kept;
    {
      const IndexCoded dataset(100);
      const Sampler sampler({.dataset_size = 100, .micro_batch_size = 2, .shuffle = false});
      DataLoader loader(dataset, sampler, {.num_workers = 2}, memory);
      loader.start({});
      loader.next();
      kept = loader.next();
    }
    EXPECT_EQ(kept->targets()[0], 2);
    EXPECT_GT(memory.bytes_allocated, 0U);
  }
  EXPECT_EQ(memory.bytes_allocated, 0U);
}

TEST(DataLoader, ReusesTheSlotOfABatchThatWasAssignedOver) {
  const IndexCoded dataset(100);
  const Sampler sampler({.dataset_size = 100, .micro_batch_size = 2, .shuffle = false});
  DataLoader loader(dataset, sampler, {.num_workers = 0});
  loader.start({});
  Batch batch;
  EXPECT_EQ(batch.features(), nullptr);
  for (int64_t i = 0; i < 10; ++i) {
    batch = loader.next();
    EXPECT_EQ(batch.targets()[0], 2 * i);
  }
}

TEST(DataLoader, RefusesToWaitForeverForALivingBatch) {
  const IndexCoded dataset(100);
  const Sampler sampler({.dataset_size = 100});
  for (const int64_t num_workers : {0, 1}) {
    DataLoader loader(dataset, sampler, {.num_workers = num_workers, .prefetch_factor = 2});
    loader.start({});
    std::vector<Batch> held;
    held.push_back(loader.next());
    held.push_back(loader.next());
    EXPECT_THAT(thrown_message<InternalError>([&] { loader.next(); }), HasSubstr("all 2 slots"));
    held.pop_back();
    EXPECT_EQ(loader.next().ids.size(), 1U);
  }
}

TEST(DataLoader, RethrowsAWorkersErrorAtItsPlace) {
  IndexCoded dataset(40);
  dataset.broken_id = 13;
  const Sampler sampler({.dataset_size = 40, .micro_batch_size = 2, .shuffle = false});
  for (const int64_t num_workers : {0, 1, 4}) {
    DataLoader loader(dataset, sampler, {.num_workers = num_workers});
    loader.start({});
    for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(loader.next().ids[0], 2 * i);
    for (int again = 0; again < 3; ++again) {
      EXPECT_THAT(thrown_message<DataError>([&] { loader.next(); }),
                  HasSubstr("sample 13 is broken"));
    }
    loader.start({.epoch = 0, .samples_in_epoch = 20});
    EXPECT_EQ(loader.next().ids[0], 20);
  }
}

TEST(DataLoader, FailsAReadWhereTheFaultPointIsArmed) {
  const IndexCoded dataset(40);
  const Sampler sampler({.dataset_size = 40, .micro_batch_size = 2, .shuffle = false});
  for (const int64_t num_workers : {0, 2}) {
    for (const auto& [action, reason] :
         {std::pair{"errno:EIO", "Input/output error"}, std::pair{"short", "ended early"}}) {
      const ArmedFaults armed(cat("data.read=", action));
      DataLoader loader(dataset, sampler, {.num_workers = num_workers});
      loader.start({});
      const auto message = thrown_message<DataError>([&] {
        for (int i = 0; i < 10; ++i) loader.next();
      });
      EXPECT_THAT(message,
                  AllOf(HasSubstr("cannot read sample"), HasSubstr("of 40"), HasSubstr(reason)));
    }
  }
}

TEST(DataLoader, PlantsTheSameDefectForEveryWorkerCount) {
  std::vector<std::string> streams;
  for (const int64_t num_workers : {0, 4}) {
    const ArmedFaults armed("defect.skip_sample:17=on");
    streams.push_back(stream_of({.num_workers = num_workers}, {}, 20));
  }
  EXPECT_EQ(streams[0], streams[1]);
  EXPECT_NE(streams[0], stream_of({.num_workers = 0}, {}, 20));
}

TEST(DataLoader, GivesEmptyBatchesToARankBehindAShortWindow) {
  const IndexCoded dataset(3);
  const Sampler sampler({.dataset_size = 3, .micro_batch_size = 2, .world_size = 4, .rank = 3});
  DataLoader loader(dataset, sampler, {.num_workers = 1});
  loader.start({});
  const Batch batch = loader.next();
  EXPECT_TRUE(batch.ids.empty());
  EXPECT_EQ(batch.feature_bytes(), 0U);
  EXPECT_EQ(batch.num_micro_steps, 1);
  EXPECT_EQ(batch.step_valid_targets, 0 + 1 + 2);
}

TEST(DataLoader, RefusesWrongUse) {
  const IndexCoded dataset(10);
  const Sampler sampler({.dataset_size = 10});
  DataLoader loader(dataset, sampler, {});
  EXPECT_THAT(thrown_message<InternalError>([&] { loader.next(); }), HasSubstr("before start()"));
  EXPECT_THAT(thrown_message<ConfigError>([&] {
                DataLoader(dataset, sampler, {-1, 2});
              }),
              HasSubstr("num_workers is -1, must be in [0, 1024]"));
  EXPECT_THAT(thrown_message<ConfigError>([&] {
                DataLoader(dataset, sampler, {1, 0});
              }),
              HasSubstr("prefetch_factor is 0, must be in [1, 1024]"));
  const Sampler other({.dataset_size = 11});
  EXPECT_THAT(thrown_message<InternalError>([&] { DataLoader(dataset, other, {}); }),
              AllOf(HasSubstr("11"), HasSubstr("10")));
}

TEST(DataLoader, SaysWhatDidNotFitIntoMemory) {
  const IndexCoded dataset(10);
  const Sampler small({.dataset_size = 10, .micro_batch_size = 2});
  CountedMemory memory;
  memory.limit = 2;
  EXPECT_THAT(thrown_message<DataError>([&] {
                DataLoader(dataset, small, {3, 2}, memory);
              }),
              AllOf(HasSubstr("slot 3 of 6"), HasSubstr("batch_size")));
  EXPECT_EQ(memory.bytes_allocated, 0U);
  for (const int64_t micro_batch_size : {int64_t{1} << 45, int64_t{1} << 61}) {
    const Sampler huge({.dataset_size = 10, .micro_batch_size = micro_batch_size});
    EXPECT_THAT(thrown_message<ConfigError>([&] { DataLoader(dataset, huge, {}); }),
                AllOf(HasSubstr(cat("batch_size is ", micro_batch_size)), HasSubstr("memory")));
  }
}

TEST(DefaultNumWorkers, SharesTheMachinesCpusOverItsRanks) {
  EXPECT_EQ(default_num_workers(2, 0, 1), 2);
  EXPECT_EQ(default_num_workers(2, 0, 2), 1);
  EXPECT_EQ(default_num_workers(2, 0, 8), 1);
  EXPECT_EQ(default_num_workers(64, 2, 1), 8);
  EXPECT_EQ(default_num_workers(64, 8, 8), 4);
  EXPECT_EQ(default_num_workers(16, 8, 8), 2);
  EXPECT_EQ(default_num_workers(1, 1, 1), 1);
}

}  // namespace
}  // namespace assay::data
