#include "checkpoints/reader.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/digest.h"
#include "base/error.h"
#include "tests/checkpoints/sample_state.h"

namespace assay::checkpoints {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

std::string refusal(const std::string& path) {
  return thrown_message<CheckpointError>([&] { open_checkpoint(path); });
}

TEST(CheckpointReader, AWholeCheckpointVerifies) {
  const TemporaryFolder run;
  EXPECT_THAT(verify_checkpoint(commit_sample(run.path(), 10)), IsEmpty());
}

// The flips reach every region of every file; a prime stride meets all offsets within words.
TEST(CheckpointReader, EveryFlippedByteIsRefusedNamingTheFile) {
  const TemporaryFolder run;
  const std::string path = commit_sample(run.path(), 10);
  for (const std::string& name : list_directory(path)) {
    const std::string file = join_path(path, name);
    const uint64_t bytes = file_bytes(file);
    for (uint64_t offset = 0; offset < bytes;
         offset += offset < 16 || offset + 16 > bytes ? 1 : 7) {
      const auto mask = static_cast<unsigned char>(1U << offset % 8);
      flip_byte(file, offset, mask);
      const std::vector<VerifyFinding> findings = verify_checkpoint(path);
      ASSERT_FALSE(findings.empty()) << name << " byte " << offset;
      EXPECT_EQ(findings.front().file, name) << "byte " << offset;
      flip_byte(file, offset, mask);
    }
  }
  EXPECT_THAT(verify_checkpoint(path), IsEmpty());
}

TEST(CheckpointReader, ADamagedTensorIsNamed) {
  const TemporaryFolder run;
  const std::string path = commit_sample(run.path(), 10);
  const std::string file = join_path(path, kModelFile);
  flip_byte(file, file_bytes(file) - 1);  // in the last tensor of the file
  const std::vector<VerifyFinding> findings = verify_checkpoint(path);
  ASSERT_EQ(findings.size(), 2U);
  EXPECT_THAT(findings[0].problem, HasSubstr("checksum"));
  EXPECT_THAT(findings[1].problem, HasSubstr("\"bn1.num_batches_tracked\""));
}

TEST(CheckpointReader, EveryTruncationIsRefusedWithBothSizes) {
  const TemporaryFolder run;
  const std::string path = commit_sample(run.path(), 10);
  for (const std::string& name : list_directory(path)) {
    const std::string file = join_path(path, name);
    const std::string bytes = read_file(file);
    for (const size_t size : {size_t{0}, size_t{1}, bytes.size() / 2, bytes.size() - 1}) {
      write_plain(file, std::string_view(bytes).substr(0, size));
      const std::vector<VerifyFinding> findings = verify_checkpoint(path);
      ASSERT_FALSE(findings.empty()) << name << " " << size;
      EXPECT_EQ(findings.front().file, name);
      if (name != kManifestFile) {
        EXPECT_THAT(findings.front().problem,
                    AllOf(HasSubstr(cat(size, " bytes")), HasSubstr(cat(bytes.size()))));
      }
    }
    write_plain(file, bytes);
  }
}

TEST(CheckpointReader, EveryMissingFileIsNamedWithTheFix) {
  const TemporaryFolder run;
  commit_sample(run.path(), 10);
  const std::string path = commit_sample(run.path(), 20);
  for (const std::string& name : list_directory(path)) {
    const std::string file = join_path(path, name);
    const std::string bytes = read_file(file);
    std::filesystem::remove(file);
    EXPECT_THAT(refusal(path),
                AllOf(HasSubstr(name), HasSubstr("is missing"), HasSubstr(path),
                      HasSubstr("resume from checkpoint-10, the newest that verifies")));
    write_plain(file, bytes);
  }
}

TEST(CheckpointReader, AddedFilesLinksAndFoldersAreRefused) {
  const TemporaryFolder run;
  const std::string path = commit_sample(run.path(), 10);
  const std::string added = join_path(path, "notes.txt");
  write_plain(added, "x");
  EXPECT_THAT(refusal(path), AllOf(HasSubstr("notes.txt"), HasSubstr("not in the manifest")));
  std::filesystem::remove(added);
  const std::string model = join_path(path, kModelFile);
  const std::string moved = join_path(run.path(), "moved");
  std::filesystem::rename(model, moved);
  std::filesystem::create_symlink(moved, model);
  EXPECT_THAT(refusal(path), AllOf(HasSubstr("model.safetensors"), HasSubstr("link")));
  std::filesystem::remove(model);
  std::filesystem::create_directory(model);
  EXPECT_THAT(refusal(path), HasSubstr("model.safetensors"));
}

TEST(CheckpointReader, FilesOfAnotherCheckpointAreRefused) {
  const TemporaryFolder run;
  const std::string first = commit_sample(run.path(), 10);
  const std::string second = commit_sample(run.path(), 21);
  for (const std::string& name : list_directory(second)) {
    if (name == kManifestFile) continue;
    const std::string bytes = read_file(join_path(second, name));
    write_plain(join_path(second, name), read_file(join_path(first, name)));
    const std::vector<VerifyFinding> findings = verify_checkpoint(second);
    ASSERT_FALSE(findings.empty()) << name;
    EXPECT_EQ(findings.front().file, name);
    write_plain(join_path(second, name), bytes);
  }
}

TEST(CheckpointReader, SwappedFilesAreRefused) {
  const TemporaryFolder run;
  const std::string path = commit_sample(run.path(), 10);
  const std::string model = join_path(path, kModelFile);
  const std::string optimizer = join_path(path, kOptimizerFile);
  const std::string bytes = read_file(model);
  write_plain(model, read_file(optimizer));
  write_plain(optimizer, bytes);
  EXPECT_GE(verify_checkpoint(path).size(), 2U);
}

// A manifest whose own digest was made right again must still agree with everything else.
TEST(CheckpointReader, AResealedManifestMustAgreeWithTheFiles) {
  const TemporaryFolder run;
  const std::string path = commit_sample(run.path(), 10);
  const std::string manifest_path = join_path(path, kManifestFile);
  const Manifest whole = open_checkpoint(path).manifest;
  const auto finding_after = [&](const auto& change) {
    Manifest manifest = whole;
    change(manifest);
    write_plain(manifest_path, manifest_to_json(manifest));
    return findings_text(verify_checkpoint(path));
  };
  EXPECT_THAT(finding_after([](Manifest& m) { m.step = 11; }), HasSubstr("of step 10"));
  EXPECT_THAT(finding_after([](Manifest& m) { m.run_id = "b"; }), HasSubstr("\"run-a\""));
  EXPECT_THAT(finding_after([](Manifest& m) { m.world_size = 2; }), HasSubstr("rank_00001.json"));
  EXPECT_THAT(finding_after([](Manifest& m) { m.world_size = INT64_MAX; }), HasSubstr("rank_"));
  EXPECT_THAT(finding_after([](Manifest& m) { m.files.pop_back(); }),
              HasSubstr("trainer_state.json"));
  EXPECT_THAT(finding_after([](Manifest& m) { m.files[0].tensors[0].xxh3 = std::string(32, '0'); }),
              HasSubstr("tensor \"conv1.weight\""));
  EXPECT_THAT(finding_after([](Manifest& m) { m.files[0].tensors.pop_back(); }),
              HasSubstr("does not name"));
  EXPECT_THAT(finding_after([](Manifest& m) { m.files[0].tensors[0].name = "w"; }),
              HasSubstr("lacks tensor \"w\""));
  EXPECT_THAT(finding_after([](Manifest& m) {
                m.state_components["rng"] = std::string(64, '0');
                m.state_digest = total_digest(m.state_components);
              }),
              HasSubstr("state digest of rng"));
  EXPECT_EQ(finding_after([](Manifest&) {}), "nothing is wrong");
}

TEST(CheckpointReader, FoldersThatAreNoCheckpointsAreRefused) {
  const TemporaryFolder run;
  EXPECT_THAT(refusal(join_path(run.path(), "none")), HasSubstr("does not exist"));
  EXPECT_THAT(refusal(run.path()), HasSubstr("manifest.json is missing"));
  write_plain(join_path(run.path(), "file"), "x");
  EXPECT_THAT(refusal(join_path(run.path(), "file")), HasSubstr("is not a folder"));
}

TEST(CheckpointReader, WorksAfterRenameMoveCopyAndThroughALink) {
  const TemporaryFolder first;
  const TemporaryFolder second;
  const std::string path = commit_sample(first.path(), 10);
  const std::string renamed = join_path(second.path(), "best model");
  std::filesystem::copy(path, renamed);
  EXPECT_THAT(verify_checkpoint(renamed + "/"), IsEmpty());
  const std::string link = join_path(second.path(), "link");
  std::filesystem::create_directory_symlink(path, link);
  EXPECT_EQ(open_checkpoint(link).manifest.step, 10);
}

}  // namespace
}  // namespace assay::checkpoints
