// Numbers read and written the same under a locale with a decimal comma.
#include <clocale>
#include <cstdio>

#include <gtest/gtest.h>

#include "tests/trainer/config/fixtures.h"

namespace assay::config {
namespace {

// Sets a locale with a decimal comma for its lifetime; `is_set` is false where none is installed.
class CommaLocale {
 public:
  CommaLocale() {
    for (const char* name : {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "de_DE"}) {
      if (std::setlocale(LC_ALL, name) != nullptr) {
        is_set = true;
        return;
      }
    }
  }
  ~CommaLocale() { std::setlocale(LC_ALL, "C"); }
  bool is_set = false;
};

TEST(Locale, DoesNotChangeValuesOrText) {
  const ConfigFile file(R"({"learning_rate": 0.1})");
  const std::string in_c = config_to_json(file.parse({"--weight_decay=0.25"}).config);
  const CommaLocale locale;
  if (!locale.is_set) GTEST_SKIP() << "no locale with a decimal comma is installed (de_DE, fr_FR)";
  char text[16];
  std::snprintf(text, sizeof(text), "%.1f", 0.5);
  ASSERT_STREQ(text, "0,5");  // the locale is in force
  const RunConfig config = file.parse({"--weight_decay=0.25"}).config;
  EXPECT_EQ(config.optimizer.learning_rate, 0.1);
  EXPECT_EQ(config.optimizer.weight_decay, 0.25);
  EXPECT_EQ(config_to_json(config), in_c);
  EXPECT_EQ(parse_words({"optimizer.learning_rate=0.125"}).config.optimizer.learning_rate, 0.125);
}

}  // namespace
}  // namespace assay::config
