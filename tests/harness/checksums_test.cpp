#include "harness/checksums.h"

#include <cstdlib>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "harness/verify_command.h"

namespace assay::harness {
namespace {

using ::testing::HasSubstr;
using Kind = ChecksumFinding::Kind;

class SumsFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    create_directories(file("evidence/run"));
    write("report.json", "{}");
    write("evidence/run/metrics.jsonl", "{\"step\":1}\n");
    write("evidence/odd name's \\ and \xc3\xa9", "odd");
    write(".lock", "123 host\n");
    write_checksums(folder_.path());
  }
  std::string file(const std::string& name) const { return join_path(folder_.path(), name); }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(file(name)) << text;
  }
  std::vector<ChecksumFinding> findings() const {
    return verify_checksums(folder_.path()).findings;
  }

  TemporaryFolder folder_;
};

TEST_F(SumsFolder, VerifiesWhatWasWritten) {
  const ChecksumResult result = verify_checksums(folder_.path());
  EXPECT_TRUE(result.findings.empty());
  EXPECT_EQ(result.checked_files, 3);
}

TEST_F(SumsFolder, AgreesWithSha256sum) {
  const std::string command =
      cat("cd '", folder_.path(), "' && sha256sum --check --strict --status SHA256SUMS");
  ASSERT_EQ(std::system("command -v sha256sum >/dev/null"), 0) << "coreutils is not installed";
  EXPECT_EQ(std::system(command.c_str()), 0);
}

TEST_F(SumsFolder, NamesAChangedByte) {
  write("evidence/run/metrics.jsonl", "{\"step\":2}\n");
  const auto found = findings();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, Kind::kChanged);
  EXPECT_EQ(found[0].path, "evidence/run/metrics.jsonl");
  EXPECT_THAT(found[0].detail, HasSubstr("expected"));
}

TEST_F(SumsFolder, NamesMissingAndExtraFiles) {
  remove_file(file("report.json"));
  write("evidence/added", "x");
  const auto found = findings();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].kind, Kind::kExtra);
  EXPECT_EQ(found[0].path, "evidence/added");
  EXPECT_EQ(found[1].kind, Kind::kMissing);
  EXPECT_EQ(found[1].path, "report.json");
}

TEST_F(SumsFolder, AFileThatBecameALinkIsNotTrusted) {
  write("elsewhere", "{}");
  remove_file(file("report.json"));
  ASSERT_EQ(symlink("elsewhere", file("report.json").c_str()), 0);
  const auto found = findings();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[1].path, "report.json");
  EXPECT_THAT(found[1].detail, HasSubstr("plain file"));
}

TEST_F(SumsFolder, RefusesNamesThatLeaveTheFolder) {
  const std::string digest(64, 'a');
  for (const std::string name : {"../outside", "/etc/passwd", "a/../../b", "a//b"}) {
    write("SHA256SUMS", checksum_line(digest, name));
    EXPECT_THROW(verify_checksums(folder_.path()), ConfigError) << name;
  }
}

TEST_F(SumsFolder, RefusesALineThatIsNoChecksum) {
  write("SHA256SUMS", "abc  report.json\n");
  EXPECT_THROW(verify_checksums(folder_.path()), ConfigError);
}

TEST_F(SumsFolder, VerifyCommandGivesItsExitCodes) {
  const std::vector<std::string> words = {folder_.path()};
  EXPECT_EQ(run_verify_command(words), 0);
  write("report.json", "changed");
  EXPECT_EQ(run_verify_command(words), 6);
  remove_file(file("SHA256SUMS"));
  EXPECT_THROW(run_verify_command(words), ConfigError);
  EXPECT_THROW(run_verify_command(std::vector<std::string>{file("nowhere")}), ConfigError);
  EXPECT_THROW(run_verify_command(std::vector<std::string>{}), ConfigError);
}

}  // namespace
}  // namespace assay::harness
