#include "checkpoints/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/digest.h"
#include "base/error.h"
#include "checkpoints/state_digest.h"
#include "tests/checkpoints/sample_state.h"

namespace assay::checkpoints {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Json = nlohmann::ordered_json;

const std::string kHash(32, 'a');

Manifest sample_manifest() {
  Manifest manifest;
  manifest.step = 30;
  manifest.world_size = 1;
  manifest.run_id = "run-a";
  manifest.created_utc = "2026-12-01T02:32:32.123Z";
  const StateDigest digest = state_digest(SampleState().parts);
  manifest.state_digest = digest.total;
  manifest.state_components = digest.components;
  manifest.versions = {{"assay", "0.1.0"}};
  manifest.files.push_back({"model.safetensors",
                            123,
                            kHash,
                            {{"w", "F32", {2, 3}, 24, kHash}, {"s", "I64", {}, 8, kHash}}});
  manifest.files.push_back({"trainer_state.json", 9, kHash, {}});
  return manifest;
}

// A manifest's text with another content but a right digest, as an attacker would make it.
std::string resealed(Json json) {
  json.erase("digest");
  std::string text = json.dump(1);
  text.resize(text.size() - 2);
  return cat(text, ",\n \"digest\": \"", sha256_hex(text), "\"\n}\n");
}

std::string refusal(const std::string& text) {
  return thrown_message<CheckpointError>([&] { manifest_from_json(text, "c/manifest.json"); });
}

template <class Change>
std::string refusal_after(const Change& change) {
  Json json = Json::parse(manifest_to_json(sample_manifest()));
  change(json);
  return refusal(resealed(json));
}

TEST(Manifest, ComesBackEqual) {
  const Manifest before = sample_manifest();
  const std::string text = manifest_to_json(before);
  const Manifest after = manifest_from_json(text, "m");
  EXPECT_EQ(manifest_to_json(after), text);
  EXPECT_EQ(after.step, before.step);
  EXPECT_EQ(after.versions, before.versions);
  ASSERT_EQ(after.files.size(), 2U);
  EXPECT_EQ(after.files[0].tensors[0].shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(after.files[0].tensors[1].byte_count, 8U);
}

TEST(Manifest, DigestIsTheLastKeyAndCoversAllBeforeIt) {
  const std::string text = manifest_to_json(sample_manifest());
  const size_t comma = text.rfind(",\n \"digest\"");
  EXPECT_EQ(text.substr(comma),
            cat(",\n \"digest\": \"", sha256_hex(text.substr(0, comma)), "\"\n}\n"));
}

TEST(Manifest, AnyFlippedBitIsRefused) {
  const std::string text = manifest_to_json(sample_manifest());
  for (size_t offset = 0; offset < text.size(); ++offset) {
    std::string changed = text;
    changed[offset] = static_cast<char>(changed[offset] ^ (1 << offset % 8));
    EXPECT_THROW(manifest_from_json(changed, "m"), CheckpointError) << offset;
  }
}

TEST(Manifest, AnyTruncationAndAdditionIsRefused) {
  const std::string text = manifest_to_json(sample_manifest());
  for (size_t size = 0; size < text.size(); ++size) {
    EXPECT_THROW(manifest_from_json(text.substr(0, size), "m"), CheckpointError) << size;
  }
  EXPECT_THROW(manifest_from_json(text + "\n", "m"), CheckpointError);
  EXPECT_THROW(manifest_from_json("\n" + text, "m"), CheckpointError);
}

TEST(Manifest, NamesThatLeadOutAreRefused) {
  const std::vector<std::string> names = {
      "../x", "/etc/passwd",          "..",           ".", "a/b", "", "a\nb",
      "\x7f", std::string("a\0b", 3), "manifest.json"};
  for (const std::string& name : names) {
    const std::string message = refusal_after([&](Json& json) { json["files"][0]["name"] = name; });
    EXPECT_THAT(message, AllOf(HasSubstr("files[0].name"), HasSubstr("c/manifest.json"))) << name;
  }
}

TEST(Manifest, RepeatedNamesAreRefused) {
  EXPECT_THAT(refusal_after([](Json& json) { json["files"][1]["name"] = "model.safetensors"; }),
              HasSubstr("must be sorted, each once"));
  EXPECT_THAT(refusal_after([](Json& json) { json["files"][0]["tensors"][1]["name"] = "w"; }),
              HasSubstr("twice"));
}

TEST(Manifest, ContradictionsAreRefused) {
  EXPECT_THAT(refusal_after([](Json& json) { json["format_version"] = 2; }),
              AllOf(HasSubstr("version 2"), HasSubstr("reads 1")));
  EXPECT_THAT(refusal_after([](Json& json) { json["format"] = "other"; }), HasSubstr("other"));
  EXPECT_THAT(refusal_after([](Json& json) { json["world_size"] = 0; }), HasSubstr("world_size"));
  EXPECT_THAT(refusal_after([](Json& json) { json["files"][0]["tensors"][0]["bytes"] = 20; }),
              AllOf(HasSubstr("files[0].tensors[0].bytes"), HasSubstr("20")));
  EXPECT_THAT(refusal_after([](Json& json) { json["files"][0]["xxh3"] = "zz"; }),
              HasSubstr("files[0].xxh3"));
  EXPECT_THAT(refusal_after([](Json& json) { json["state_components"].erase("rng"); }),
              HasSubstr("rng"));
  EXPECT_THAT(
      refusal_after([](Json& json) { json["state_components"]["rng"] = std::string(64, '0'); }),
      HasSubstr("does not follow"));
  EXPECT_THAT(
      refusal_after([](Json& json) { json["state_components"]["x"] = std::string(64, '0'); }),
      HasSubstr("does not exist"));
}

TEST(Manifest, EveryFieldIsNeededAndTyped) {
  const Json whole = Json::parse(manifest_to_json(sample_manifest()));
  for (const auto& item : whole.items()) {
    const std::string key = item.key();  // clang 14 captures no structured binding
    if (key == "digest") continue;
    EXPECT_THAT(refusal_after([&](Json& json) { json.erase(key); }), HasSubstr(key));
    EXPECT_THAT(refusal_after([&](Json& json) { json[key] = Json::array({Json::array()}); }),
                HasSubstr(key));
  }
}

}  // namespace
}  // namespace assay::checkpoints
