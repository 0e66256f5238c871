#include "base/text.h"

#include <array>
#include <clocale>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iomanip>
#include <limits>
#include <locale>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/json.h"

namespace assay {
namespace {

using testing::ElementsAre;

double random_finite_double(std::mt19937_64& random) {
  while (true) {
    const uint64_t bits = random();
    double value = 0;
    std::memcpy(&value, &bits, sizeof(value));
    if (std::isfinite(value)) return value;
  }
}

std::string printf_hex(double value) {
  std::array<char, 64> buffer{};
  std::snprintf(buffer.data(), buffer.size(), "%a", value);
  return buffer.data();
}

class CommaDecimalPoint : public std::numpunct<char> {
 protected:
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

TEST(Cat, JoinsTextAndNumbers) {
  const std::string name = "loss";
  EXPECT_EQ(cat("step ", 3, ' ', name, " ", 0.5, " ", 0.25F, " ", true, " ", uint64_t{7}),
            "step 3 loss 0.5 0.25 true 7");
}

TEST(NumberText, IsTheShortestThatReadsBack) {
  EXPECT_EQ(number_text(0.1), "0.1");
  EXPECT_EQ(number_text(1e300), "1e+300");
  EXPECT_EQ(number_text(-0.0), "-0");
  EXPECT_EQ(number_text(std::numeric_limits<double>::quiet_NaN()), "nan");
  EXPECT_EQ(number_text(-std::numeric_limits<double>::infinity()), "-inf");
}

TEST(NumberText, ReadsBackForRandomBitPatterns) {
  constexpr uint64_t kSeed = 20261201;
  SCOPED_TRACE(cat("seed ", kSeed));
  std::mt19937_64 random(kSeed);
  for (int i = 0; i < 20000; ++i) {
    const double value = random_finite_double(random);
    ASSERT_EQ(parse_double(number_text(value)), value) << number_text(value);
  }
}

TEST(HexFloat, EqualsPrintfForRandomBitPatterns) {
  constexpr uint64_t kSeed = 7;
  SCOPED_TRACE(cat("seed ", kSeed));
  std::mt19937_64 random(kSeed);
  for (int i = 0; i < 20000; ++i) {
    const double value = random_finite_double(random);
    ASSERT_EQ(hex_float(value), printf_hex(value));
    ASSERT_EQ(parse_hex_float(hex_float(value)), value) << hex_float(value);
  }
}

TEST(HexFloat, EqualsPrintfAtTheEdges) {
  using Limits = std::numeric_limits<double>;
  for (const double value : {0.0, -0.0, 1.0, 3.0, Limits::min(), Limits::max(), -Limits::max(),
                             Limits::denorm_min(), Limits::min() / 2, Limits::epsilon()}) {
    EXPECT_EQ(hex_float(value), printf_hex(value));
    EXPECT_EQ(parse_hex_float(hex_float(value)), value) << hex_float(value);
  }
  EXPECT_EQ(hex_float(3.0), "0x1.8p+1");
}

TEST(HexFloat, KeepsTheSignOfZeroAndTheNonFinite) {
  EXPECT_TRUE(std::signbit(parse_hex_float(hex_float(-0.0)).value()));
  EXPECT_TRUE(std::isnan(parse_hex_float(hex_float(std::nan(""))).value()));
  EXPECT_EQ(parse_hex_float("-inf"), -std::numeric_limits<double>::infinity());
}

TEST(HexFloat, ReadsDecimalTextToo) { EXPECT_EQ(parse_hex_float("-2.5e-3"), -2.5e-3); }

TEST(HexFloat, RefusesWhatIsNoHexFloat) {
  for (const char* text :
       {"", "-", "0x", "0x-1p0", "0xinf", "0xnan", "0x1.8p", "0x1p+1 ", " 0x1p1", "--0x1p1",
        "0x1p1x", "0x1p99999", "NaN", "infinity", "+0x1p1", "0x0x1"}) {
    EXPECT_EQ(parse_hex_float(text), std::nullopt) << text;
  }
}

TEST(ParseNumber, TakesTheWholeTextOnly) {
  EXPECT_EQ(parse_int64("-9223372036854775808"), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(parse_uint64("18446744073709551615"), std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(parse_double("1e-3"), 1e-3);
  for (const char* text : {"", " 1", "1 ", "+1", "1x", "0x10", "9223372036854775808", "1,5", "-"}) {
    EXPECT_EQ(parse_int64(text), std::nullopt) << text;
  }
  EXPECT_EQ(parse_uint64("-1"), std::nullopt);
  for (const char* text : {"", "nan", "inf", "-inf", "1e999", "1,5", "0x1p1", "1.5f", " 1", "."}) {
    EXPECT_EQ(parse_double(text), std::nullopt) << text;
  }
}

TEST(NumberText, DoesNotFollowTheCppLocale) {
  const std::locale before =
      std::locale::global(std::locale(std::locale::classic(), new CommaDecimalPoint));
  const std::string written = cat(1234.5, " ", 1234567, " ", hex_float(1.5));
  const std::optional<double> read = parse_double("1234.5");
  const std::string size = bytes_text(1500);
  std::locale::global(before);
  EXPECT_EQ(written, "1234.5 1234567 0x1.8p+0");
  EXPECT_EQ(read, 1234.5);
  EXPECT_EQ(size, "1.5 kB");
}

// Switches the process's numbers to a decimal comma for its lifetime; builds a locale of nothing
// but numbers with localedef(1) where none with a comma is installed.
class CommaLocale {
 public:
  CommaLocale() : before_(std::setlocale(LC_NUMERIC, nullptr)) {
    if (try_locale("de_DE.UTF-8") || try_locale("fr_FR.UTF-8")) return;
    const std::string source = join_path(folder_.path(), "source");
    write_file_durably(source,
                       "LC_NUMERIC\ndecimal_point \"<U002C>\"\nthousands_sep \"<U002E>\"\n"
                       "grouping 3;3\nEND LC_NUMERIC\n",
                       "config");
    // -c: go on though all other categories are missing, for which it also exits with 1.
    const std::string command =
        cat("localedef -c -i '", source, "' '", join_path(folder_.path(), "comma"), "' > '", source,
            ".log' 2>&1");
    if (std::system(command.c_str()) < 0) return;
    ::setenv("LOCPATH", folder_.path().c_str(), 1);
    try_locale("comma");
  }
  ~CommaLocale() {
    std::setlocale(LC_NUMERIC, before_.c_str());
    ::unsetenv("LOCPATH");
  }
  CommaLocale(const CommaLocale&) = delete;
  CommaLocale& operator=(const CommaLocale&) = delete;
  bool has_comma() const { return has_comma_; }

 private:
  bool try_locale(const char* name) {
    has_comma_ = std::setlocale(LC_NUMERIC, name) != nullptr &&
                 std::string_view(std::localeconv()->decimal_point) == ",";
    return has_comma_;
  }

  TemporaryFolder folder_;
  std::string before_;
  bool has_comma_ = false;
};

TEST(NumberText, DoesNotFollowTheCLocale) {
  const CommaLocale locale;
  if (!locale.has_comma()) GTEST_SKIP() << "no locale with a decimal comma, and no localedef";
  ASSERT_EQ(printf_hex(1.5), "0x1,8p+0") << "the locale is not in force";
  EXPECT_EQ(cat(0.5, " ", hex_float(1.5), " ", duration_text(1.5)), "0.5 0x1.8p+0 1.5 s");
  EXPECT_EQ(parse_double("0.5"), 0.5);
  EXPECT_EQ(parse_hex_float("0x1.8p+0"), 1.5);
  EXPECT_EQ(parse_double("0,5"), std::nullopt);
  EXPECT_EQ(parse_json("[0.5]", "x.json").dump(), "[0.5]");
}

TEST(HexCoding, GoesThereAndBack) {
  std::vector<unsigned char> bytes(256);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<unsigned char>(i);
  EXPECT_EQ(hex_encode(bytes).substr(0, 8), "00010203");
  EXPECT_EQ(hex_decode(hex_encode(bytes)), bytes);
  EXPECT_EQ(hex_decode("aF"), std::vector<unsigned char>{0xAF});
  EXPECT_EQ(hex_decode("abc"), std::nullopt);
  EXPECT_EQ(hex_decode("zz"), std::nullopt);
  EXPECT_EQ(hex_decode(" 1"), std::nullopt);
}

TEST(NearestSpelling, FindsSlipsOfTheHand) {
  const std::vector<std::string> keys = {"learning_rate", "max_steps", "optim", "seed"};
  EXPECT_EQ(nearest_spelling("leraning_rate", keys), "learning_rate");
  EXPECT_EQ(nearest_spelling("max_step", keys), "max_steps");
  EXPECT_EQ(nearest_spelling("sede", keys), "seed");
  EXPECT_EQ(nearest_spelling("seed", keys), "seed");
}

TEST(NearestSpelling, IsSilentWhenNothingIsNear) {
  const std::vector<std::string> keys = {"learning_rate", "seed"};
  EXPECT_EQ(nearest_spelling("batch", keys), std::nullopt);
  EXPECT_EQ(nearest_spelling(std::string(100000, 'x'), keys), std::nullopt);
  EXPECT_EQ(nearest_spelling("seed", {}), std::nullopt);
}

TEST(Escaping, MakesTextSafeToShow) {
  EXPECT_EQ(escaped("a\nb\tc\r\x1b[31m"), "a\\nb\\tc\\r\\x1b[31m");
  EXPECT_EQ(escaped("\x7f"), "\\x7f");
  EXPECT_EQ(escaped("gr\xc3\xb6\xc3\x9f"
                    "e"),
            "gr\xc3\xb6\xc3\x9f"
            "e");
  EXPECT_EQ(escaped("\xff\xc3"), "\\xff\\xc3");
  EXPECT_EQ(escaped("\xc2\x9b"
                    "31m"),
            "\\xc2\\x9b"
            "31m");  // the one-character CSI
  EXPECT_EQ(quoted("say \"a\\b\"\n"), "\"say \\\"a\\\\b\\\"\\n\"");
  EXPECT_EQ(quoted(""), "\"\"");
}

TEST(Escaping, QuotesStringsWhereStdQuotedIsInSight) {
  std::string changeable = "a";
  const std::string constant = "b";
  EXPECT_EQ(cat(quoted(changeable), quoted(constant)), "\"a\"\"b\"");
}

TEST(Pieces, SplitAndJoinAreInverse) {
  EXPECT_THAT(split("a,,b,", ','), ElementsAre("a", "", "b", ""));
  EXPECT_THAT(split("", ','), ElementsAre(""));
  const std::vector<std::string> parts = {"a", "", "b"};
  EXPECT_EQ(join(parts, ","), "a,,b");
  EXPECT_EQ(trimmed(" \t\r\n a b \v\f"), "a b");
  EXPECT_EQ(trimmed(" \n"), "");
}

TEST(HumanUnits, RoundWithoutFourDigits) {
  EXPECT_EQ(bytes_text(0), "0 B");
  EXPECT_EQ(bytes_text(999), "999 B");
  EXPECT_EQ(bytes_text(1500000000), "1.5 GB");
  EXPECT_EQ(bytes_text(999'949), "999.9 kB");
  EXPECT_EQ(bytes_text(999'951), "1.0 MB");
  EXPECT_EQ(bytes_text(std::numeric_limits<uint64_t>::max()), "18.4 EB");
}

TEST(HumanUnits, NameDurations) {
  EXPECT_EQ(duration_text(0.0000123), "12 us");
  EXPECT_EQ(duration_text(0.0124), "12 ms");
  EXPECT_EQ(duration_text(0.9999), "1.0 s");
  EXPECT_EQ(duration_text(3.44), "3.4 s");
  EXPECT_EQ(duration_text(59.97), "1 min 00 s");
  EXPECT_EQ(duration_text(3599.7), "1 h 00 min");
  EXPECT_EQ(duration_text(3720), "1 h 02 min");
  EXPECT_EQ(duration_text(86400 * 3 + 3600 * 4), "3 d 04 h");
  EXPECT_EQ(duration_text(-3.4), "-3.4 s");
  EXPECT_EQ(duration_text(std::nan("")), "nan");
}

TEST(Utf8, AcceptsEveryLength) {
  EXPECT_TRUE(is_valid_utf8(""));
  EXPECT_TRUE(is_valid_utf8("a\xc3\xa9\xe6\xb8\xac\xf0\x9f\x98\x80"));
  EXPECT_TRUE(is_valid_utf8("\xf4\x8f\xbf\xbf"));
}

TEST(Utf8, RefusesBrokenForms) {
  for (const char* text :
       {"\x80", "\xc3", "\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80", "\xf0\x80\x80\x80",
        "\xf4\x90\x80\x80", "\xff", "\xe6\xb8", "a\xc3(", "\xe6\xb8("}) {
    EXPECT_FALSE(is_valid_utf8(text)) << escaped(text);
  }
}

}  // namespace
}  // namespace assay
