// FORMAT.md against what is really written: keys, files, constants and fault points.
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "checkpoints/state_digest.h"
#include "tests/checkpoints/sample_state.h"

namespace assay::checkpoints {
namespace {

using testing::HasSubstr;

std::string format_page() { return read_file(cat(ASSAY_SOURCE_DIR, "/checkpoints/FORMAT.md")); }

void collect_keys(const nlohmann::json& json, std::set<std::string>& keys) {
  if (json.is_object()) {
    for (const auto& [key, value] : json.items()) {
      keys.insert(key);
      if (key != "versions" && key != "state_components") collect_keys(value, keys);
    }
  } else if (json.is_array()) {
    for (const nlohmann::json& value : json) collect_keys(value, keys);
  }
}

TEST(FormatPage, NamesEveryKeyAndFileThatIsWritten) {
  const TemporaryFolder run;
  const std::string page = format_page();
  const std::string path = commit_sample(run.path(), 10);
  for (const std::string& name : list_directory(path)) {
    const bool is_rank = name.starts_with("rank_");
    EXPECT_THAT(page, HasSubstr(is_rank ? "`rank_<5 digits>.json`" : name));
    if (!name.ends_with(".json")) continue;
    std::set<std::string> keys;
    const nlohmann::json json = nlohmann::json::parse(read_file(join_path(path, name)));
    collect_keys(json, keys);
    EXPECT_GE(keys.size(), 3U);
    for (const std::string& key : keys) EXPECT_THAT(page, HasSubstr(cat("`", key, "`"))) << name;
  }
}

TEST(FormatPage, NamesEveryStateComponentAndMetadataKey) {
  const TemporaryFolder run;
  const std::string page = format_page();
  for (const std::string_view name : state_component_names()) {
    EXPECT_THAT(page, HasSubstr(cat("| `", name, "` |")));
  }
  const SafetensorsFile file(join_path(commit_sample(run.path(), 10), kModelFile));
  for (const auto& [key, unused] : file.metadata())
    EXPECT_THAT(page, HasSubstr(cat("`\"", key, "\"")));
}

TEST(FormatPage, NamesEveryFaultPointOfASave) {
  const std::string page = format_page();
  for (const std::string_view point : known_fault_points()) {
    if (!point.starts_with("checkpoint.")) continue;
    const std::string group = cat(point.substr(0, point.rfind('.')), ".*");
    EXPECT_TRUE(page.find(cat("`", point, "`")) != std::string::npos ||
                page.find(cat("`", group, "`")) != std::string::npos)
        << point;
  }
}

}  // namespace
}  // namespace assay::checkpoints
