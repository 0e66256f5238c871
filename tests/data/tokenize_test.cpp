#include "data/tokenize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "data/encode_text.h"
#include "data/token_file.h"
#include "data/token_manifest.h"
#include "tests/data/armed_faults.h"
#include "tests/data/idx_files.h"
#include "tests/data/thrown_message.h"

namespace assay::data {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// A word a token: its length. Wants UTF-8 and has an end of text, as GPT-2's does.
class WordLengths : public Tokenizer {
 public:
  class Words : public Encoder {
   public:
    void encode(std::string_view text, std::vector<uint16_t>& ids) override {
      for (size_t begin = 0; begin < text.size();) {
        const size_t end = std::min(text.find_first_of(" \n", begin + 1), text.size());
        ids.push_back(static_cast<uint16_t>(end - begin));
        begin = end;
      }
    }
  };
  std::string_view name() const override { return "words"; }
  int64_t vocabulary_size() const override { return 5000; }
  bool wants_utf8() const override { return true; }
  int64_t end_of_text() const override { return 4999; }
  std::unique_ptr<Encoder> make_encoder() const override { return std::make_unique<Words>(); }
  std::string decode(std::span<const int64_t>) const override { return ""; }
  std::vector<std::string> vocabulary_hashes() const override { return {}; }
};

class Tokenize : public ::testing::Test {
 protected:
  std::string at(const std::string& name) const { return join_path(folder_.path(), name); }
  std::string text_file(const std::string& name, const std::string& content) const {
    write_bytes(at(name), content);
    return at(name);
  }
  TokenizeRequest request(const std::string& text) const {
    TokenizeRequest request;
    request.inputs = {text_file("text", text)};
    request.output_dir = at("out");
    return request;
  }
  std::vector<int64_t> tokens(const std::string& name) const {
    const TokenFile file(at("out/" + name), {});
    std::vector<int64_t> ids;
    for (int64_t i = 0; i < file.size(); ++i) ids.push_back(file.at(i));
    return ids;
  }

  TemporaryFolder folder_;
  const std::unique_ptr<Tokenizer> bytes_ = make_tokenizer("bytes", "");
  const WordLengths words_;
};

TEST_F(Tokenize, HoldsTheLastPartOut) {
  const TokenizeResult result = tokenize_files(*bytes_, request("0123456789abcdefghij"));
  ASSERT_EQ(result.splits.size(), 2U);
  EXPECT_EQ(tokens("train.bin").size(), 18U);
  EXPECT_EQ(tokens("val.bin"), (std::vector<int64_t>{'i', 'j'}));
  EXPECT_EQ(result.splits[0].tokens, 18);
}

TEST_F(Tokenize, NeverCutsWithinACharacter) {
  TokenizeRequest split = request("aaaa\xe4\xbd\xa0\xe4\xbd\xa0zzzz");
  split.val_fraction = 0.6;  // byte 6, the last of the first character
  tokenize_files(*bytes_, split);
  EXPECT_EQ(tokens("train.bin").size(), 7U);
}

TEST_F(Tokenize, WritesEitherFormat) {
  tokenize_files(*bytes_, request("some text"));
  EXPECT_EQ(file_bytes(at("out/train.bin")), 1024U + 2 * 9);
  TokenizeRequest raw = request("some text");
  raw.output_dir = at("raw");
  raw.format = TokenFormat::kRaw;
  raw.val_fraction = 0;
  tokenize_files(*bytes_, raw);
  EXPECT_EQ(read_file(at("raw/train.bin")).substr(0, 4), std::string("s\0o\0", 4));
  EXPECT_FALSE(path_exists(at("raw/val.bin")));
}

TEST_F(Tokenize, GivesTheSameFilesForAnyNumberOfThreads) {
  std::string text;
  for (int i = 0; text.size() < 5'000'000; ++i) text += cat("word", i, i % 7 == 0 ? "\n" : " ");
  TokenizeRequest one = request(text);
  const TokenizeResult expected = tokenize_files(words_, one);
  for (const int64_t threads : {2, 3, 16}) {
    TokenizeRequest many = one;
    many.output_dir = at(cat("out", threads));
    many.num_threads = threads;
    EXPECT_EQ(tokenize_files(words_, many).splits[0].file.sha256, expected.splits[0].file.sha256);
  }
}

TEST_F(Tokenize, PutsTheEndOfTextBehindEachDocument) {
  TokenizeRequest several = request("one two");
  several.inputs.push_back(text_file("second", "three"));
  several.has_end_of_text = true;
  several.val_fraction = 0.25;  // 3 of 12 bytes: within the second document
  tokenize_files(words_, several);
  EXPECT_EQ(tokens("train.bin"), (std::vector<int64_t>{3, 4, 4999, 2}));
  EXPECT_EQ(tokens("val.bin"), (std::vector<int64_t>{3, 4999}));
  EXPECT_THAT(thrown_message<ConfigError>([&] { tokenize_files(*bytes_, several); }),
              HasSubstr("--end_of_text"));
}

TEST_F(Tokenize, RefusesTextThatIsNoUtf8NamingThePlace) {
  TokenizeRequest broken = request("good words \xff here and there");
  EXPECT_THAT(thrown_message<DataError>([&] { tokenize_files(words_, broken); }),
              AllOf(HasSubstr("byte 11 (0xff)"), HasSubstr("--invalid_utf8 replace")));
  EXPECT_FALSE(path_exists(at("out/train.bin")));
  EXPECT_TRUE(list_directory(at("out")).empty());
  broken.invalid_utf8 = InvalidUtf8::kReplace;
  broken.val_fraction = 0;
  tokenize_files(words_, broken);
  EXPECT_EQ(tokens("train.bin").at(2), 4);  // space and the three bytes of U+FFFD
}

TEST_F(Tokenize, NamesThePlaceInTheWholeFileOfABrokenByte) {
  std::string text;
  while (text.size() < 3'000'000) text += "word ";
  text[2'500'002] = '\xff';
  TokenizeRequest broken = request(text);
  broken.num_threads = 2;
  EXPECT_THAT(thrown_message<DataError>([&] { tokenize_files(words_, broken); }),
              HasSubstr("byte 2500002 (0xff)"));
}

TEST_F(Tokenize, NeverOverwritesUnlessTold) {
  TokenizeRequest again = request("some text");
  tokenize_files(*bytes_, again);
  EXPECT_THAT(thrown_message<ConfigError>([&] { tokenize_files(*bytes_, again); }),
              AllOf(HasSubstr("train.bin is there already"), HasSubstr("--overwrite")));
  again.may_overwrite = true;
  again.val_fraction = 0;
  tokenize_files(*bytes_, again);
  EXPECT_FALSE(path_exists(at("out/val.bin")));  // of the run before: would be mixed in
}

TEST_F(Tokenize, RefusesNothingToDo) {
  TokenizeRequest none = request("");
  EXPECT_THAT(thrown_message<DataError>([&] { tokenize_files(*bytes_, none); }),
              HasSubstr("no bytes"));
  none.inputs = {at("missing.txt")};
  EXPECT_THAT(thrown_message<DataError>([&] { tokenize_files(*bytes_, none); }),
              HasSubstr("missing.txt"));
  none.inputs = {};
  EXPECT_THROW(tokenize_files(*bytes_, none), ConfigError);
  TokenizeRequest fraction = request("text");
  fraction.val_fraction = 1;
  EXPECT_THROW(tokenize_files(*bytes_, fraction), ConfigError);
}

TEST_F(Tokenize, LeavesNothingBehindWhenTheDiskIsFull) {
  for (const char* step : {"open", "write", "fsync", "close", "rename"}) {
    const ArmedFaults faults(cat("shard.", step, "=errno:ENOSPC"));
    TokenizeRequest full = request("some text");
    EXPECT_THAT(thrown_message<DataError>([&] { tokenize_files(*bytes_, full); }),
                HasSubstr("cannot be written"))
        << step;
    EXPECT_TRUE(list_directory(at("out")).empty()) << step;
  }
}

TEST_F(Tokenize, WritesAManifestThatFindsChangedFiles) {
  const TokenizeResult result = tokenize_files(*bytes_, request("some text, long enough"));
  const auto json = nlohmann::json::parse(read_file(at("out/tokens.json")));
  EXPECT_EQ(json["tokenizer"], "bytes");
  EXPECT_EQ(json["splits"][0]["tokens"], 20);
  std::vector<SourceFile> files = {result.splits[0].file, result.splits[1].file};
  EXPECT_EQ(check_token_manifest(at("out"), files), 2);
  files[1].sha256[0] = 'x';
  EXPECT_THAT(thrown_message<DataError>([&] { check_token_manifest(at("out"), files); }),
              AllOf(HasSubstr("val.bin"), HasSubstr(json["splits"][1]["sha256"])));
  files.pop_back();
  EXPECT_THAT(thrown_message<DataError>([&] { check_token_manifest(at("out"), files); }),
              HasSubstr("val.bin, which is not there"));
  write_bytes(at("out/tokens.json"), "{}");
  EXPECT_THROW(check_token_manifest(at("out"), files), DataError);
}

TEST_F(Tokenize, HandsOverTheErrorOfAThread) {
  std::string text;
  while (text.size() < 9'000'000) text += "word ";
  EncodeCalls calls;
  int64_t taken = 0;
  calls.prepare = [](std::string_view part, size_t offset, std::string&) {
    if (offset > 4'000'000) throw DataError(cat("broken at ", offset));
    return part;
  };
  calls.take = [&](std::span<const uint16_t>, size_t) { ++taken; };
  EXPECT_THAT(thrown_message<DataError>([&] { encode_text(words_, text, 4, calls); }),
              HasSubstr("broken at 4"));
  EXPECT_EQ(taken, 4);
}

}  // namespace
}  // namespace assay::data
