// Every file under configs/ parses and says what it is for.
#include <gmock/gmock.h>

#include "base/text.h"
#include "tests/trainer/config/fixtures.h"

namespace assay::config {
namespace {

std::vector<std::string> config_paths() {
  std::vector<std::string> paths;
  for (const std::string& name : list_directory(ASSAY_CONFIGS_DIR)) {
    if (name.ends_with(".json")) paths.push_back(join_path(ASSAY_CONFIGS_DIR, name));
  }
  return paths;
}

TEST(ConfigsFolder, HoldsOnlyConfigurationsThatParse) {
  const std::vector<std::string> paths = config_paths();
  ASSERT_GE(paths.size(), 4u);
  for (const std::string& path : paths) EXPECT_EQ(refusal({path}), "") << path;
}

TEST(ConfigsFolder, StaysUsableForAShortRun) {
  for (const std::string& path : config_paths()) {
    EXPECT_EQ(refusal({path, "--max_steps=30", "--batch_size=1", "--save_steps=15"}), "") << path;
  }
}

TEST(ConfigsFolder, StartsEveryFileWithItsPurpose) {
  for (const std::string& path : config_paths()) {
    EXPECT_TRUE(read_file(path).starts_with("// ")) << path;
  }
}

TEST(ConfigsFolder, NamesFilesAfterModelAndData) {
  for (const std::string& path : config_paths()) {
    const RunConfig config = parse_words({path}).config;
    const std::string data = config.data.name == "fashion_mnist" ? "fashion" : config.data.name;
    EXPECT_TRUE(file_name(path).starts_with(cat(config.model.name, "_", data))) << path;
  }
}

}  // namespace
}  // namespace assay::config
