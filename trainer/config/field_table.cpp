// The table of settings, and its rows of run, model and data.
#include "trainer/config/field_rows.h"
#include "trainer/config/fields.h"

namespace assay::config {
namespace {

using field_rows::kBelowOne;
using field_rows::kCount;
using field_rows::row;

std::vector<std::string_view> views(std::span<const std::string> names) {
  return {names.begin(), names.end()};
}

using R = RunConfig;
using enum FieldRole;

void add_run_fields(std::vector<Field>& table) {
  using enum FieldGroup;
  table.push_back(
      row<&R::output_dir>({.key = "output_dir",
                           .names = {"output_dir"},
                           .group = kRun,
                           .help = "Run folder; made if missing. Left out: runs/<UTC>-<model>",
                           .example = "runs/first",
                           .is_of_session = true}));
  table.push_back(
      row<&R::overwrite_output_dir>({.key = "overwrite_output_dir",
                                     .names = {"overwrite_output_dir"},
                                     .group = kRun,
                                     .help = "Start anew in a folder that holds a run; only files "
                                             "that the old run wrote are replaced",
                                     .example = "true",
                                     .is_of_session = true}));
  table.push_back(row<&R::max_steps>(
      {.key = "max_steps",
       .names = {"max_steps"},
       .group = kRun,
       .role = kTarget,
       .help = "Optimizer steps (update attempts) in all; wins over num_train_epochs",
       .example = "1000",
       .limits = kCount}));
  table.push_back(row<&R::num_train_epochs>(
      {.key = "num_train_epochs",
       .names = {"num_train_epochs", "epochs"},
       .group = kRun,
       .role = kTarget,
       .help = "Passes over the training data, fractions allowed; used when max_steps is left out",
       .example = "3",
       .limits = {.low = 0, .high = 1e6, .is_low_open = true}}));
  table.push_back(row<&R::seed>({.key = "seed",
                                 .names = {"seed"},
                                 .group = kRun,
                                 .role = kIdentity,
                                 .help = "Seed of initialisation, dropout and data order",
                                 .example = "42"}));
}

void add_model_fields(std::vector<Field>& table) {
  using enum FieldGroup;
  using M = ModelConfig;
  table.push_back(row<&R::model, &M::name>({.key = "model.name",
                                            .names = {"model"},
                                            .group = kModel,
                                            .role = kIdentity,
                                            .help = "Model to train",
                                            .example = "gpt_tiny",
                                            .choices = views(model_names())}));
  table.push_back(row<&R::model, &M::n_layer>(
      {.key = "model.n_layer",
       .group = kModel,
       .role = kIdentity,
       .help = "Transformer blocks of a GPT; left out: the named model's own",
       .example = "2",
       .limits = {.low = 1, .high = 1024}}));
  table.push_back(
      row<&R::model, &M::n_head>({.key = "model.n_head",
                                  .group = kModel,
                                  .role = kIdentity,
                                  .help = "Attention heads of a GPT; must divide model.n_embd",
                                  .example = "4",
                                  .limits = {.low = 1, .high = 1024}}));
  table.push_back(row<&R::model, &M::n_embd>({.key = "model.n_embd",
                                              .group = kModel,
                                              .role = kIdentity,
                                              .help = "Width of a GPT",
                                              .example = "128",
                                              .limits = {.low = 1, .high = 65536}}));
  table.push_back(row<&R::model, &M::n_positions>({.key = "model.n_positions",
                                                   .group = kModel,
                                                   .role = kIdentity,
                                                   .help = "Context length of a GPT, tokens",
                                                   .example = "128",
                                                   .limits = {.low = 1, .high = 1048576}}));
  table.push_back(
      row<&R::model, &M::vocab_size>({.key = "model.vocab_size",
                                      .group = kModel,
                                      .role = kIdentity,
                                      .help = "Vocabulary of a GPT; an id outside it is refused",
                                      .example = "256",
                                      .limits = {.low = 2, .high = 16777216}}));
  table.push_back(row<&R::model, &M::dropout>(
      {.key = "model.dropout",
       .group = kModel,
       .role = kIdentity,
       .help = "Probability of every dropout of the model; 0 switches them off; left out: its own",
       .example = "0.1",
       .limits = kBelowOne}));
  table.push_back(row<&R::model, &M::num_classes>(
      {.key = "model.num_classes",
       .group = kModel,
       .role = kIdentity,
       .help = "Classes of an image model; left out: 1000 for ImageNet's models, 10 for others",
       .example = "10",
       .limits = {.low = 2, .high = 1e6}}));
  table.push_back(row<&R::model, &M::image_size>(
      {.key = "model.image_size",
       .group = kModel,
       .role = kIdentity,
       .help = "Side of an image model's square images, pixels; left out: the model's own",
       .example = "224",
       .limits = {.low = 8, .high = 8192}}));
  table.push_back(row<&R::model, &M::init_from>(
      {.key = "model.init_from",
       .group = kModel,
       .role = kIdentity,
       .help = "A .safetensors file with the weights to start from, under the names of torchvision "
               "or Hugging Face; left out: drawn at random",
       .example = "weights.safetensors"}));
}

void add_data_fields(std::vector<Field>& table) {
  using enum FieldGroup;
  using D = DataConfig;
  table.push_back(
      row<&R::data, &D::name>({.key = "data.name",
                               .names = {"dataset", "data"},
                               .group = kData,
                               .role = kIdentity,
                               .help = "Data set; left out: that of the model: digits, cifar10, "
                                       "image_folder (ImageNet), or text for GPTs",
                               .example = "digits",
                               .choices = views(dataset_names())}));
  table.push_back(row<&R::data, &D::directory>(
      {.key = "data.directory",
       .names = {"data_dir"},
       .group = kData,
       .help = "Folder with the data set's files; left out: embedded or the system's package",
       .example = "/usr/share/datasets/mnist"}));
  table.push_back(
      row<&R::data, &D::max_train_samples>({.key = "data.max_train_samples",
                                            .names = {"max_train_samples"},
                                            .group = kData,
                                            .role = kIdentity,
                                            .help = "Use the first N training samples only",
                                            .example = "1024",
                                            .limits = kCount}));
  table.push_back(
      row<&R::data, &D::max_eval_samples>({.key = "data.max_eval_samples",
                                           .names = {"max_eval_samples"},
                                           .group = kData,
                                           .help = "Use the first N held-out samples only",
                                           .example = "256",
                                           .limits = kCount}));
  table.push_back(row<&R::data, &D::sequence_length>(
      {.key = "data.sequence_length",
       .group = kData,
       .role = kIdentity,
       .help = "Tokens a sample; left out: the model's context length",
       .example = "64",
       .limits = {.low = 1, .high = 1048576}}));
  table.push_back(row<&R::data, &D::token_bits>(
      {.key = "data.token_bits",
       .group = kData,
       .role = kIdentity,
       .help = "Width of the numbers in token files that have no header, 16 or 32; left out: 16",
       .example = "32",
       .limits = {.low = 16, .high = 32}}));
  table.push_back(row<&R::data, &D::synthetic_samples>(
      {.key = "data.synthetic_samples",
       .group = kData,
       .role = kIdentity,
       .help = "Training samples of the data set synthetic; left out: 1024",
       .example = "4096",
       .limits = kCount}));
  table.push_back(row<&R::data, &D::shuffle>({.key = "data.shuffle",
                                              .group = kData,
                                              .role = kIdentity,
                                              .help = "A new order of the samples every epoch",
                                              .example = "false"}));
  table.push_back(row<&R::data, &D::drop_last>(
      {.key = "data.drop_last",
       .names = {"drop_last", "dataloader_drop_last"},
       .group = kData,
       .role = kIdentity,
       .help = "Drop the shorter last step of an epoch instead of training on it",
       .example = "true"}));
  table.push_back(row<&R::data, &D::num_workers>(
      {.key = "data.num_workers",
       .names = {"num_workers", "dataloader_num_workers"},
       .group = kData,
       .help = "Loader threads of this rank; 0: the training thread reads; left out: automatic",
       .example = "2",
       .limits = {.low = 0, .high = 1024}}));
  table.push_back(row<&R::data, &D::prefetch_factor>(
      {.key = "data.prefetch_factor",
       .names = {"prefetch_factor", "dataloader_prefetch_factor"},
       .group = kData,
       .help = "Batches that each loader thread keeps ready",
       .example = "4",
       .limits = {.low = 1, .high = 1024}}));
  table.push_back(
      row<&R::data, &D::pin_memory>({.key = "data.pin_memory",
                                     .names = {"pin_memory", "dataloader_pin_memory"},
                                     .group = kData,
                                     .help = "Batches in page-locked memory, so that copies to a "
                                             "GPU need not block; CPU runs have none",
                                     .example = "false"}));
}

void add_image_fields(std::vector<Field>& table) {
  using enum FieldGroup;
  using D = DataConfig;
  table.push_back(row<&R::data, &D::augment>(
      {.key = "data.augment",
       .names = {"augment"},
       .group = kData,
       .role = kIdentity,
       .help = "Train on random crops and mirror images: of image files RandomResizedCrop and flip, "
               "of CIFAR a crop after padding by 4 and flip; other data sets have none",
       .example = "false"}));
  table.push_back(row<&R::data, &D::jpeg_scale>(
      {.key = "data.jpeg_scale",
       .names = {"jpeg_scale"},
       .group = kData,
       .role = kIdentity,
       .help = "exact: JPEG files are decoded at full size; auto: at 1/2, 1/4 or 1/8 where that is "
               "enough, which is quicker and gives slightly other pixels",
       .example = "auto",
       .choices = {"exact", "auto"}}));
}

std::vector<Field> make_table() {
  std::vector<Field> table;
  add_run_fields(table);
  add_model_fields(table);
  add_data_fields(table);
  add_image_fields(table);
  field_rows::add_training_rows(table);
  field_rows::add_rank_rows(table);
  return table;
}

constexpr Switch kSwitches[] = {
    {"bf16", "precision", "bf16", "bfloat16 autocast with fp32 weights; same as precision=bf16"},
    {"fp16", "precision", "fp16", ""},
    {"fp64", "precision", "fp64",
     "Double precision on the CPU, for proofs; same as precision=fp64"},
};

}  // namespace

std::span<const Field> fields() {
  static const std::vector<Field> table = make_table();
  return table;
}

std::span<const Switch> switches() { return kSwitches; }

}  // namespace assay::config
