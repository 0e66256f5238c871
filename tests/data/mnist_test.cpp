#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "data/dataset.h"
#include "tests/data/idx_files.h"
#include "tests/data/thrown_message.h"

namespace assay::data {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const std::string kTrainImages = "train-images-idx3-ubyte";
const std::string kTrainLabels = "train-labels-idx1-ubyte";
const std::string kEvalImages = "t10k-images-idx3-ubyte";
const std::string kEvalLabels = "t10k-labels-idx1-ubyte";

// A folder with 5 training and 2 evaluation images of 3 x 4.
void write_set(const std::string& folder) {
  write_bytes(join_path(folder, kTrainImages), idx_images(5, 3, 4));
  write_bytes(join_path(folder, kTrainLabels), idx_labels({3, 1, 4, 1, 5}));
  write_bytes(join_path(folder, kEvalImages), idx_images(2, 3, 4));
  write_bytes(join_path(folder, kEvalLabels), idx_labels({9, 0}));
}

OpenedData open_mnist_in(const std::string& folder) {
  return open_data({.name = "mnist", .directory = folder});
}

std::string folder_refusal(const std::string& folder) {
  return thrown_message<DataError>([&] { open_mnist_in(folder); });
}

TEST(Mnist, ReadsFourFiles) {
  const TemporaryFolder folder;
  write_set(folder.path());
  const OpenedData data = open_mnist_in(folder.path());
  EXPECT_EQ(data.train->size(), 5);
  EXPECT_EQ(data.eval->size(), 2);
  EXPECT_EQ(data.train->spec().feature_shape, (std::vector<int64_t>{1, 3, 4}));
  EXPECT_EQ(data.train->spec().num_classes, 10);
  EXPECT_EQ(data.train->spec().mean, std::vector<float>{0.1307F});
  std::vector<unsigned char> pixels(12);
  int64_t label = -1;
  data.train->read(4, pixels, {&label, 1});
  EXPECT_EQ(label, 5);
  EXPECT_EQ(pixels[0], 48);
  ASSERT_EQ(data.files.size(), 4U);
  EXPECT_EQ(data.files[2].path, join_path(folder.path(), kEvalImages));
}

TEST(Mnist, FindsTorchvisionsFoldersAndPackedFiles) {
  const TemporaryFolder plain;
  write_set(plain.path());
  const std::string digest = open_mnist_in(plain.path()).digest;
  const TemporaryFolder root;
  write_set(join_path(root.path(), "MNIST/raw"));
  EXPECT_EQ(open_mnist_in(root.path()).digest, digest);
  EXPECT_EQ(open_mnist_in(join_path(root.path(), "MNIST")).digest, digest);
  const std::string images = join_path(join_path(root.path(), "MNIST/raw"), kTrainImages);
  write_bytes(images + ".gz", gzipped(read_file(images)));
  remove_file(images);
  EXPECT_EQ(open_mnist_in(root.path()).digest, digest);
  const std::string labels = join_path(join_path(root.path(), "MNIST/raw"), kTrainLabels);
  rename_path(labels, join_path(parent_path(labels), "train-labels.idx1-ubyte"), "report.rename");
  EXPECT_EQ(open_mnist_in(root.path()).digest, digest);
}

TEST(Mnist, ChangesItsDigestWithOneByte) {
  const TemporaryFolder folder;
  write_set(folder.path());
  const std::string digest = open_mnist_in(folder.path()).digest;
  write_bytes(join_path(folder.path(), kEvalLabels), idx_labels({9, 1}));
  EXPECT_NE(open_mnist_in(folder.path()).digest, digest);
}

TEST(Mnist, RefusesALabelOutOfRange) {
  const TemporaryFolder folder;
  write_set(folder.path());
  for (const int label : {10, 255}) {
    write_bytes(join_path(folder.path(), kTrainLabels), idx_labels({3, 1, label, 1, 5}));
    EXPECT_THAT(folder_refusal(folder.path()),
                AllOf(HasSubstr(join_path(folder.path(), kTrainLabels)),
                      HasSubstr(cat("label 2 is ", label)), HasSubstr("must be in [0, 9]")));
  }
}

TEST(Mnist, RefusesCountsThatDiffer) {
  const TemporaryFolder folder;
  write_set(folder.path());
  write_bytes(join_path(folder.path(), kTrainLabels), idx_labels({3, 1, 4, 1}));
  EXPECT_THAT(folder_refusal(folder.path()),
              AllOf(HasSubstr("5 images"), HasSubstr("4 labels"), HasSubstr(kTrainImages),
                    HasSubstr(kTrainLabels)));
}

TEST(Mnist, RefusesSplitsOfDifferentImageSizes) {
  const TemporaryFolder folder;
  write_set(folder.path());
  write_bytes(join_path(folder.path(), kEvalImages), idx_images(2, 4, 4));
  EXPECT_THAT(folder_refusal(folder.path()), AllOf(HasSubstr("4 x 4"), HasSubstr("3 x 4")));
}

TEST(Mnist, NamesEveryMissingFile) {
  const TemporaryFolder folder;
  write_set(folder.path());
  remove_file(join_path(folder.path(), kEvalImages));
  EXPECT_THAT(folder_refusal(folder.path()),
              AllOf(HasSubstr("3 of 4"), HasSubstr(kEvalImages), HasSubstr("is missing")));
  remove_file(join_path(folder.path(), kTrainLabels));
  EXPECT_THAT(folder_refusal(folder.path()),
              AllOf(HasSubstr("2 of 4"), HasSubstr(kTrainLabels), HasSubstr("are missing")));
}

TEST(Mnist, SaysWhatIsWrongWithTheFolder) {
  const TemporaryFolder folder;
  EXPECT_THAT(folder_refusal(folder.path()),
              AllOf(HasSubstr("has none of"), HasSubstr(kTrainImages), HasSubstr("MNIST/raw")));
  EXPECT_THAT(folder_refusal("/does/not/exist"),
              AllOf(HasSubstr("\"/does/not/exist\" does not exist"), HasSubstr("Fix:")));
  const std::string file = join_path(folder.path(), "train-images.gz");
  write_bytes(file, gzipped(idx_images(1, 2, 2)));
  EXPECT_THAT(folder_refusal(file),
              AllOf(HasSubstr("is a file (a gzip file"), HasSubstr("folder")));
  EXPECT_THAT(folder_refusal(""), AllOf(HasSubstr("data_dir is empty"), HasSubstr("--data_dir"),
                                        HasSubstr("--dataset digits")));
}

TEST(Mnist, ReadsFoldersWithOddNames) {
  const TemporaryFolder folder;
  const std::string odd = join_path(folder.path(), "a b'c\"d\xc3\xa4$(x)#%");
  write_set(odd);
  EXPECT_EQ(open_mnist_in(odd).train->size(), 5);
}

TEST(FashionMnist, ReadsAGivenFolder) {
  const TemporaryFolder folder;
  write_set(join_path(folder.path(), "FashionMNIST/raw"));
  const OpenedData data = open_data({.name = "fashion_mnist", .directory = folder.path()});
  EXPECT_EQ(data.train->size(), 5);
  EXPECT_EQ(data.train->spec().stddev, std::vector<float>{0.3530F});
}

TEST(FashionMnist, ReadsTheSystemsPackageOrSaysHowToInstallIt) {
  if (!is_directory("/usr/share/datasets/fashion-mnist")) {
    const auto message = thrown_message<DataError>([] { open_data({.name = "fashion_mnist"}); });
    EXPECT_THAT(message,
                AllOf(HasSubstr("apt-get install dataset-fashion-mnist"), HasSubstr("--data_dir")));
    return;
  }
  const OpenedData data = open_data({.name = "fashion_mnist"});
  EXPECT_EQ(data.train->size(), 60000);
  EXPECT_EQ(data.eval->size(), 10000);
  EXPECT_EQ(data.files[0].sha256,
            "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888");
}

}  // namespace
}  // namespace assay::data
