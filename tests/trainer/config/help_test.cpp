#include <gmock/gmock.h>

#include "base/text.h"
#include "tests/trainer/config/fixtures.h"
#include "trainer/config/fields.h"
#include "trainer/config/later_release.h"

namespace assay::config {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// The description lines between a field's usage line and the next one, joined.
std::string description_of(const std::string& help, const std::string& usage) {
  const size_t start = help.find("\n  " + usage);
  if (start == std::string::npos) return "";
  std::string text;
  const std::vector<std::string> lines = split(help.substr(start + 1), '\n');
  for (size_t i = 1; i < lines.size() && lines[i].starts_with("      "); ++i) {
    text += trimmed(lines[i]) + " ";
  }
  return text;
}

TEST(TrainHelp, DescribesEveryFieldWithItsDefault) {
  const std::string help = train_help();
  for (const Field& field : fields()) {
    const std::string usage =
        field.names.empty() ? cat(field.key, "=") : cat("--", field.names.front());
    const std::string description = description_of(help, usage);
    EXPECT_THAT(description, HasSubstr(std::string(field.help))) << field.key;
    EXPECT_THAT(description, HasSubstr("Default: ")) << field.key;
    for (const std::string_view name : field.names) EXPECT_THAT(help, HasSubstr(cat("--", name)));
  }
  EXPECT_THAT(description_of(help, "--batch_size"), HasSubstr("Default: 64."));
  EXPECT_THAT(description_of(help, "--batch_size"), HasSubstr("an integer in 1 .. 2147483647"));
  EXPECT_THAT(description_of(help, "--max_steps"), HasSubstr("Default: none."));
}

TEST(TrainHelp, NamesEveryChoiceAndSwitch) {
  const std::string help = train_help();
  for (const std::string& model : model_names()) EXPECT_THAT(help, HasSubstr(model));
  for (const std::string& dataset : dataset_names()) EXPECT_THAT(help, HasSubstr(dataset));
  EXPECT_THAT(help, HasSubstr("\n  --bf16\n"));
  EXPECT_THAT(help, Not(HasSubstr("\n  --fp16\n")));
  EXPECT_THAT(help, HasSubstr("--print-config"));
}

TEST(TrainHelp, ListsWhatALaterReleaseBrings) {
  const std::string help = train_help();
  const size_t start = help.find("Not in this release (0.1)");
  ASSERT_NE(start, std::string::npos);
  for (const LaterSetting& later : later_settings()) {
    const std::string_view name = later.value.empty() ? later.key : later.value;
    EXPECT_NE(help.find(name, start), std::string::npos) << name;
  }
}

TEST(TrainHelp, KeepsLinesShortAndPlain) {
  for (const std::string& line : split(train_help(), '\n')) {
    EXPECT_LE(line.size(), 100u) << line;
    for (const char letter : line) EXPECT_TRUE(letter >= ' ' && letter <= '~') << line;
  }
}

}  // namespace
}  // namespace assay::config
