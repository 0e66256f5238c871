#include <cstring>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/digest.h"
#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "data/loader.h"
#include "data/pack.h"
#include "data/packed_file.h"
#include "data/packed_writer.h"
#include "tests/data/armed_faults.h"
#include "tests/data/idx_files.h"
#include "tests/data/index_coded.h"
#include "tests/data/thrown_message.h"
#include "tests/data/token_files.h"

namespace assay::data {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Pixels and targets that say which sample they are, all targets within the classes.
class Numbered : public IndexCoded {
 public:
  explicit Numbered(int64_t size) : IndexCoded(size), spec_(IndexCoded::spec()) {
    spec_.num_classes = 100;  // the same in both splits
  }
  const SampleSpec& spec() const override { return spec_; }
  void read(int64_t id, std::span<unsigned char> features,
            std::span<int64_t> targets) const override {
    IndexCoded::read(id, features, targets);
    targets[1] = size() - 1 - id;
  }
  int64_t valid_targets(int64_t) const override { return 2; }

 private:
  SampleSpec spec_;
};

OpenedData numbered(int64_t train, int64_t eval) {
  OpenedData data;
  data.name = "numbered";
  data.digest = "d1";
  data.train = std::make_unique<Numbered>(train);
  data.eval = std::make_unique<Numbered>(eval);
  return data;
}

struct Read {
  std::vector<unsigned char> features;
  std::vector<int64_t> targets;
  bool operator==(const Read&) const = default;
};

Read read_of(const Dataset& dataset, int64_t id) {
  Read read{std::vector<unsigned char>(dataset.spec().feature_bytes()),
            std::vector<int64_t>(static_cast<size_t>(dataset.spec().targets_per_sample))};
  dataset.read(id, read.features, read.targets);
  return read;
}

class Packed : public ::testing::Test {
 protected:
  std::string at(const std::string& name) const { return join_path(folder_.path(), name); }
  std::string out() const { return at("out"); }
  PackRequest request(int64_t shard_samples) const {
    PackRequest request;
    request.output_dir = out();
    request.shard_samples = shard_samples;
    return request;
  }
  OpenedData opened(const std::string& directory) const {
    DataRequest request;
    request.name = "packed";
    request.directory = directory;
    return open_data(request);
  }
  std::string refusal() const {
    return thrown_message<DataError>([&] {
      const OpenedData data = opened(out());
      for (int64_t id = 0; id < data.train->size(); ++id) read_of(*data.train, id);
    });
  }
  void rewrite(const std::string& name, const std::string& content) const {
    write_bytes(join_path(out(), name), content);
  }

  TemporaryFolder folder_;
};

TEST_F(Packed, ComesBackAsItWas) {
  pack_data(numbered(11, 3), request(4));
  const OpenedData data = opened(out());
  const Numbered train(11);
  ASSERT_EQ(data.train->size(), 11);
  ASSERT_EQ(data.eval->size(), 3);
  EXPECT_EQ(list_directory(out()).size(), 4U);
  EXPECT_EQ(data.train->spec().feature_shape, train.spec().feature_shape);
  EXPECT_EQ(data.train->spec().num_classes, 100);
  for (int64_t id = 0; id < 11; ++id) EXPECT_EQ(read_of(*data.train, id), read_of(train, id));
}

TEST_F(Packed, KeepsRealDataWithItsScaling) {
  DataRequest digits;
  digits.name = "digits";
  const OpenedData source = open_data(digits);
  pack_data(source, request(500));
  const OpenedData data = opened(out());
  EXPECT_EQ(data.train->spec().mean, source.train->spec().mean);
  EXPECT_EQ(data.train->spec().stddev, source.train->spec().stddev);
  for (int64_t id : {0, 499, 500, 1497}) {
    EXPECT_EQ(read_of(*data.train, id), read_of(*source.train, id));
  }
  EXPECT_EQ(read_of(*data.eval, 298), read_of(*source.eval, 298));
}

TEST_F(Packed, KeepsTokens) {
  write_bytes(at("t/train.bin"), token_bytes<uint16_t>(counting(50)));
  DataRequest tokens;
  tokens.name = "tokens";
  tokens.directory = at("t");
  tokens.sequence_length = 7;
  const OpenedData source = open_data(tokens);
  pack_data(source, request(0));
  const OpenedData data = opened(out());
  ASSERT_EQ(data.train->size(), 7);
  for (int64_t id = 0; id < 7; ++id) {
    EXPECT_EQ(read_of(*data.train, id), read_of(*source.train, id));
  }
}

TEST_F(Packed, IsTheSameForAnyNumberOfThreads) {
  PackRequest one = request(7);
  const std::vector<PackedShard> expected = pack_data(numbered(40, 0), one);
  PackRequest many = request(7);
  many.output_dir = at("many");
  many.num_threads = 4;
  const std::vector<PackedShard> shards = pack_data(numbered(40, 0), many);
  ASSERT_EQ(shards.size(), expected.size());
  for (size_t i = 0; i < shards.size(); ++i) {
    EXPECT_EQ(shards[i].file.sha256, expected[i].file.sha256);
  }
}

TEST_F(Packed, IsAlignedForTheMap) {
  pack_data(numbered(5, 0), request(0));
  const PackedFile file(join_path(out(), "train-00000.packed"));
  EXPECT_EQ(file.layout().entries.at(0).offset, kPackedFirstSample);
  for (const PackedEntry& entry : file.layout().entries) {
    EXPECT_EQ(entry.offset % kPackedAlignment, 0U);
    EXPECT_EQ(entry.bytes, 4U + 2 * 8);
  }
}

TEST_F(Packed, HasADigestOfItsContent) {
  pack_data(numbered(5, 0), request(0));
  const std::string first = opened(out()).digest;
  PackRequest again = request(0);
  again.may_overwrite = true;
  pack_data(numbered(5, 0), again);
  EXPECT_EQ(opened(out()).digest, first);
  OpenedData other = numbered(5, 0);
  other.digest = "d2";
  pack_data(other, again);
  EXPECT_NE(opened(out()).digest, first);
}

TEST_F(Packed, FindsEverySingleChangedByte) {
  pack_data(numbered(6, 0), request(0));
  const std::string name = "train-00000.packed";
  const std::string content = read_file(join_path(out(), name));
  // The padding between the parts carries no data; 44..48 bytes behind the trailer's start do not
  // either, but are covered by its checksum.
  const auto is_padding = [&](size_t place) {
    const PackedLayout layout = parse_packed(
        {reinterpret_cast<const unsigned char*>(content.data()), content.size()}, name);
    const std::string json = packed_header_json(layout.header);
    if (place < kPackedPrefixBytes + json.size()) return false;
    for (const PackedEntry& entry : layout.entries) {
      if (place >= entry.offset && place < entry.offset + entry.bytes) return false;
    }
    return place < content.size() - kPackedTrailerBytes - layout.entries.size() * 24;
  };
  int checked = 0;
  for (size_t place = 0; place < content.size(); ++place) {
    if (is_padding(place)) continue;
    std::string damaged = content;
    damaged[place] = static_cast<char>(damaged[place] ^ 0x10);
    rewrite(name, damaged);
    ++checked;
    EXPECT_THAT(refusal(), HasSubstr(name)) << "byte " << place;
  }
  EXPECT_GT(checked, 500);
}

TEST_F(Packed, RefusesFilesOfEveryOtherLength) {
  pack_data(numbered(6, 0), request(0));
  const std::string content = read_file(join_path(out(), "train-00000.packed"));
  for (size_t length = 0; length < content.size(); length += 37) {
    rewrite("train-00000.packed", content.substr(0, length));
    EXPECT_THAT(refusal(), HasSubstr("train-00000.packed")) << length;
  }
  rewrite("train-00000.packed", content + "x");
  EXPECT_THAT(refusal(), HasSubstr("does not end in ASSAYEND"));
}

TEST_F(Packed, NamesSampleAndPlaceOfDamage) {
  pack_data(numbered(6, 0), request(0));
  std::string content = read_file(join_path(out(), "train-00000.packed"));
  content[kPackedFirstSample + 2 * kPackedAlignment] ^= 1;
  rewrite("train-00000.packed", content);
  EXPECT_THAT(refusal(), AllOf(HasSubstr("sample 2 of 6"), HasSubstr("checksum")));
}

TEST_F(Packed, RefusesSetsThatAreNotWhole) {
  pack_data(numbered(12, 0), request(4));
  const std::string middle = join_path(out(), "train-00001.packed");
  const std::string content = read_file(middle);
  remove_file(middle);
  EXPECT_THAT(refusal(), AllOf(HasSubstr("is shard 0 of 3"), HasSubstr("there are 2")));
  rewrite("train-00001.packed", read_file(join_path(out(), "train-00000.packed")));
  EXPECT_THAT(refusal(), HasSubstr("is shard 0 of 3, there are 3 and shard 1 is expected"));
  rewrite("train-00001.packed", content);
  rewrite("val-00000.packed", content);
  EXPECT_THAT(refusal(), HasSubstr("belongs to the split train, must be val"));
  remove_file(join_path(out(), "val-00000.packed"));
  PackRequest other = request(4);
  other.output_dir = at("other");
  OpenedData data = numbered(12, 0);
  data.digest = "d2";
  pack_data(data, other);
  rewrite("train-00001.packed", read_file(at("other/train-00001.packed")));
  EXPECT_THAT(refusal(), HasSubstr("\"d2\""));
}

TEST_F(Packed, RefusesTargetsOutsideTheClasses) {
  OpenedData wrong = numbered(4, 0);
  wrong.train = std::make_unique<IndexCoded>(4);  // its second target is -id
  pack_data(wrong, request(0));
  EXPECT_THAT(refusal(), AllOf(HasSubstr("sample 1: target is -1"), HasSubstr("[0, 3]")));
  DataRequest limited;
  limited.name = "packed";
  limited.directory = out();
  limited.class_limit = 3;
  EXPECT_THAT(thrown_message<DataError>([&] { open_data(limited); }),
              AllOf(HasSubstr("[0, 3]"), HasSubstr("[0, 2]")));
}

TEST_F(Packed, OfAnotherShapeThanTheModelTakesIsRefused) {
  pack_data(numbered(4, 0), request(0));
  DataRequest larger;
  larger.name = "packed";
  larger.directory = out();
  larger.image_shape = {3, 224, 224};
  EXPECT_THAT(thrown_message<DataError>([&] { open_data(larger); }),
              AllOf(HasSubstr("1 x 2 x 2 pixels"), HasSubstr("3 x 224 x 224")));
  larger.is_tokens = true;
  EXPECT_THAT(thrown_message<DataError>([&] { open_data(larger); }), HasSubstr("128 tokens"));
}

TEST_F(Packed, NeverMixesTwoDataSets) {
  pack_data(numbered(12, 2), request(4));
  EXPECT_THAT(thrown_message<ConfigError>([&] { pack_data(numbered(4, 0), request(4)); }),
              AllOf(HasSubstr(".packed is there already"), HasSubstr("--overwrite")));
  PackRequest over = request(4);
  over.may_overwrite = true;
  pack_data(numbered(4, 0), over);
  EXPECT_EQ(list_directory(out()).size(), 1U);
}

TEST_F(Packed, LeavesNoHalfShardBehind) {
  for (const char* step : {"open", "write", "fsync", "close", "rename"}) {
    const ArmedFaults faults(cat("shard.", step, "=errno:ENOSPC"));
    EXPECT_THAT(thrown_message<DataError>([&] { pack_data(numbered(4, 0), request(0)); }),
                HasSubstr("cannot be written"))
        << step;
    EXPECT_TRUE(list_directory(out()).empty()) << step;
  }
}

TEST_F(Packed, HandsOverASampleThatCannotBeRead) {
  OpenedData data = numbered(9, 0);
  dynamic_cast<Numbered&>(*data.train).broken_id = 5;
  PackRequest many = request(0);
  many.num_threads = 3;
  EXPECT_THAT(thrown_message<DataError>([&] { pack_data(data, many); }),
              HasSubstr("sample 5 is broken"));
  EXPECT_TRUE(list_directory(out()).empty());
}

TEST_F(Packed, HasNoOriginalsUnlessItsSourceHas) {
  PackRequest original = request(0);
  original.is_original = true;
  EXPECT_THAT(thrown_message<ConfigError>([&] { pack_data(numbered(4, 0), original); }),
              HasSubstr("--content pixels"));
}

TEST_F(Packed, IsDeliveredAlikeByAnyNumberOfWorkers) {
  pack_data(numbered(50, 0), request(9));
  const OpenedData data = opened(out());
  const Sampler sampler({.dataset_size = 50, .micro_batch_size = 4, .seed = 5});
  std::string expected;
  for (const int64_t workers : {0, 1, 4}) {
    DataLoader loader(*data.train, sampler, {.num_workers = workers, .prefetch_factor = 2});
    loader.start({});
    std::string bytes;
    for (int i = 0; i < 30; ++i) {
      const Batch batch = loader.next();
      bytes.append(reinterpret_cast<const char*>(batch.features()), batch.feature_bytes());
    }
    if (workers == 0) expected = bytes;
    EXPECT_EQ(bytes, expected) << workers;
  }
}

TEST(PackedHeader, ComesBackAsItWas) {
  PackedHeader header;
  header.source = "x";
  header.source_digest = "abc";
  header.split = "val";
  header.shard = 2;
  header.num_shards = 3;
  header.first_sample = 20;
  header.num_samples = 5;
  header.spec = {.feature_shape = {3, 8, 8},
                 .num_classes = 7,
                 .mean = {0.1F, 0.2F, 0.3F},
                 .stddev = {1, 2, 3}};
  const PackedHeader parsed = parse_packed_header(packed_header_json(header), "p");
  EXPECT_EQ(packed_header_json(parsed), packed_header_json(header));
  EXPECT_EQ(parsed.spec.mean, header.spec.mean);
}

TEST(PackedHeader, RefusesValuesThatCannotBe) {
  const std::string good =
      R"({"source":"x","source_digest":"d","split":"train","shard":0,"num_shards":1,)"
      R"("first_sample":0,"num_samples":1,"content":"raw","feature_type":"uint8",)"
      R"("feature_shape":[1,2,2],"targets_per_sample":1,"num_classes":10,"mean":[],"stddev":[]})";
  EXPECT_EQ(parse_packed_header(good, "p").num_samples, 1);
  const std::pair<std::string, std::string> changes[] = {
      {R"("split":"train")", R"("split":"test")"},
      {R"("shard":0)", R"("shard":1)"},
      {R"("num_samples":1)", R"("num_samples":0)"},
      {R"("num_samples":1)", R"("num_samples":1e3)"},
      {R"("content":"raw")", R"("content":"encoded")"},
      {R"("feature_type":"uint8")", R"("feature_type":"float")"},
      {R"([1,2,2])", R"([1,70000,70000])"},
      {R"([1,2,2])", R"([])"},
      {R"([1,2,2])", R"([1,0,2])"},
      {R"([1,2,2])", R"([1,1,1,1,1])"},
      {R"("targets_per_sample":1)", R"("targets_per_sample":-1)"},
      {R"("num_classes":10)", R"("num_classes":99999999999)"},
      {R"("mean":[])", R"("mean":["nan"])"},
      {R"("mean":[])", R"("mean":["0x1p+0","0x1p+0"])"},
      {R"("source":"x",)", ""},
      {R"("source":"x")", R"("source":5)"},
      {R"("stddev":[]})", R"("stddev":[])"},
  };
  for (const auto& [from, to] : changes) {
    std::string changed = good;
    changed.replace(changed.find(from), from.size(), to);
    EXPECT_THAT(thrown_message<DataError>([&] { parse_packed_header(changed, "p.packed"); }),
                HasSubstr("p.packed"))
        << changed;
  }
}

}  // namespace
}  // namespace assay::data
