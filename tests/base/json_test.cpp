#include "base/json.h"

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"

namespace assay {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string refusal_of(std::string_view text, const JsonRules& rules = {}) {
  try {
    parse_json(text, "configs/x.json", rules);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(ParseJson, ReadsEveryKindOfValue) {
  const nlohmann::json value = parse_json(
      R"({"a":[1,-2,0.5,true,null,"x\n\u00e9"],"b":{},"c":18446744073709551615,"d":[]})", "x");
  EXPECT_EQ(value.at("a").dump(), "[1,-2,0.5,true,null,\"x\\n\xc3\xa9\"]");
  EXPECT_EQ(value.at("c").get<uint64_t>(), UINT64_MAX);
  EXPECT_TRUE(value.at("b").is_object() && value.at("d").is_array());
  EXPECT_EQ(parse_json(" 3 ", "x"), 3);
}

TEST(ParseJson, AgreesWithTheLibraryOnRandomDocuments) {
  constexpr uint64_t kSeed = 23;
  SCOPED_TRACE(cat("seed ", kSeed));
  std::mt19937_64 random(kSeed);
  for (int round = 0; round < 300; ++round) {
    nlohmann::json value = nlohmann::json::object();
    nlohmann::json* at = &value;
    for (uint64_t step = random() % 40; step > 0; --step) {
      nlohmann::json& child = (*at)[cat("k", random() % 9)];
      switch (random() % 4) {
        case 0:
          child = random();
          break;
        case 1:
          child = static_cast<double>(random()) / 7;
          break;
        case 2:
          child = nlohmann::json::array({1, cat("s", random()), nullptr});
          break;
        default:
          child = nlohmann::json::object();
          at = &child;
      }
    }
    ASSERT_EQ(parse_json(value.dump(1), "x"), value);
  }
}

TEST(ParseJson, AcceptsByteOrderMarkAndCarriageReturns) {
  EXPECT_EQ(parse_json("\xEF\xBB\xBF{\r\n\"a\": 1\r\n}\r\n", "x").at("a"), 1);
}

TEST(ParseJson, AllowsCommentsOnlyWhereAsked) {
  const std::string text = "{ // line\n \"a\": /* block */ 1 }";
  EXPECT_EQ(parse_json(text, "x", {.allow_comments = true}).at("a"), 1);
  EXPECT_THAT(refusal_of(text), HasSubstr("line 1, column 3: comments are not allowed"));
}

TEST(ParseJson, NamesTheFileAndThePlace) {
  EXPECT_THAT(refusal_of("{\n  \"a\": 1,\n  \"\xc3\xa9\" 2\n}"),
              HasSubstr("configs/x.json is not valid JSON at line 3, column 7: "));
}

TEST(ParseJson, RefusesATrailingCommaByName) {
  EXPECT_THAT(refusal_of("{\"a\": 1,\n}"),
              HasSubstr("line 2, column 1: trailing comma before \"}\""));
  EXPECT_THAT(refusal_of("[1, ]"), HasSubstr("column 5: trailing comma before \"]\""));
  EXPECT_THAT(refusal_of("[1, /* , */ ]", {.allow_comments = true}), HasSubstr("trailing comma"));
  EXPECT_THAT(refusal_of("[1, // \"\n ]", {.allow_comments = true}), HasSubstr("trailing comma"));
}

TEST(ParseJson, RefusesDoubleKeysWithTheirPath) {
  EXPECT_THAT(refusal_of("{\"model\": {\"n\": 1,\n  \"n\": 2}}"),
              AllOf(HasSubstr("line 2, column 3"), HasSubstr("\"model.n\" is given twice")));
  EXPECT_THAT(refusal_of(R"({"a":[{},{"b":1,"b":2}]})"), HasSubstr("\"a.1.b\" is given twice"));
  EXPECT_THAT(refusal_of(R"({"a":1,"\u0061":2})"), HasSubstr("column 8: key \"a\""));
  EXPECT_THAT(refusal_of(R"({"\"":1,"\"":2})"), HasSubstr("line 1, column 9"));
  EXPECT_EQ(parse_json(R"([{"a":1},{"a":2}])", "x").size(), 2U);
}

TEST(ParseJson, RefusesNonFiniteNumbers) {
  EXPECT_THAT(refusal_of("[NaN]"), HasSubstr("column 2: NaN is not a JSON number"));
  EXPECT_THAT(refusal_of("{\"lr\": -Infinity}"), HasSubstr("column 8: -Infinity is not"));
  EXPECT_THAT(refusal_of("[1, inf]"), HasSubstr("column 5: inf is not a JSON number"));
  EXPECT_THAT(refusal_of("[nan]"), HasSubstr("column 2: nan is not a JSON number"));
  EXPECT_THAT(refusal_of("[1, -1e999]"), HasSubstr("column 5: -1e999 is out of the range"));
}

TEST(ParseJson, RefusesOtherEncodings) {
  EXPECT_THAT(refusal_of(std::string_view("\xFF\xFE{\0}\0", 6)), HasSubstr("UTF-16"));
  EXPECT_THAT(refusal_of(std::string_view("\xFE\xFF\0{\0}", 6)), HasSubstr("UTF-16"));
  EXPECT_THAT(refusal_of(std::string_view("{\0}\0", 4)), HasSubstr("column 2: a zero byte"));
  EXPECT_THAT(refusal_of("{\"a\":\n\"\xc3\xa9 \xe9\"}"),
              HasSubstr("line 2, column 4: byte 0xe9 is not part of UTF-8 text"));
}

TEST(ParseJson, RefusesNestingBeyondTheBound) {
  const auto nested = [](size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_EQ(refusal_of(nested(64)), "");
  EXPECT_THAT(refusal_of(nested(65)), HasSubstr("column 65: nested deeper than 64 levels"));
  EXPECT_THAT(refusal_of(nested(3), {.max_depth = 2}), HasSubstr("deeper than 2"));
  EXPECT_THAT(refusal_of(std::string(100000, '[')), HasSubstr("deeper than 64"));
  std::string objects;
  for (int i = 0; i < 100000; ++i) objects += "{\"a\":";
  EXPECT_THAT(refusal_of(objects), HasSubstr("deeper than 64"));
}

TEST(ParseJson, RefusesWhatIsNoDocument) {
  EXPECT_THAT(refusal_of(""), HasSubstr("the text is empty"));
  EXPECT_THAT(refusal_of(" \n\t"), HasSubstr("the text is empty"));
  for (const char* text :
       {"{", "[1", "\"a", "{\"a\"}", "{\"a\":}", "[1 2]", "{}{}", "[01]", "[1.]", "[+1]", "{a:1}",
        "{'a':1}", "[\"\\x\"]", "[\"\\ud800\"]", "tru", "]", "\"\t\""}) {
    EXPECT_THAT(refusal_of(text), HasSubstr("is not valid JSON at line 1, column ")) << text;
  }
  EXPECT_THAT(refusal_of("[1"), HasSubstr("column 3"));
}

TEST(ParseJson, KeepsItsMessagesShortAndPrintable) {
  const std::string message = refusal_of("[\"" + std::string(100000, 'x') + "\x1b");
  EXPECT_LT(message.size(), 1000U);
  EXPECT_EQ(message.find('\x1b'), std::string::npos);
}

TEST(ParseJson, SurvivesMutatedDocuments) {
  constexpr uint64_t kSeed = 29;
  SCOPED_TRACE(cat("seed ", kSeed));
  std::mt19937_64 random(kSeed);
  const std::string original =
      R"({"model": {"n_layer": 2, "x": [1, 2.5e3, null, true]}, "text": "a\u00e9\\b", "l": -3})";
  int num_refused = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string text = original;
    for (uint64_t edits = 1 + random() % 3; edits > 0; --edits) {
      const size_t at = random() % text.size();
      if (random() % 3 == 0) {
        text.resize(at + 1);
      } else {
        text[at] = static_cast<char>(random());
      }
    }
    const std::string refusal = refusal_of(text, {.allow_comments = random() % 2 == 0});
    if (refusal.empty()) continue;
    ++num_refused;
    ASSERT_THAT(refusal, HasSubstr("configs/x.json is not valid JSON at line ")) << escaped(text);
  }
  EXPECT_GT(num_refused, 1500);
}

}  // namespace
}  // namespace assay
