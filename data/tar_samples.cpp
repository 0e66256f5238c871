#include "data/tar_samples.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <unordered_set>

#include <nlohmann/json.hpp>

#include "base/digest.h"
#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "data/file_facts.h"
#include "data/file_reader.h"

namespace assay::data {
namespace {

constexpr uint64_t kMostLabelBytes = uint64_t{1} << 16;
constexpr int64_t kMostLabel = int64_t{1} << 31;

enum class Kind { kImage, kClass, kJson, kOther };

struct NameParts {
  std::string_view key;
  Kind kind = Kind::kOther;
};

// "a/b.c/img.seg.png" -> key "a/b.c/img", ending "seg.png".
NameParts parts_of(std::string_view name) {
  const size_t slash = name.rfind('/');
  const size_t base = slash == name.npos ? 0 : slash + 1;
  const size_t dot = name.find('.', base);
  if (dot == name.npos || dot == base) return {name, Kind::kOther};
  std::string ending(name.substr(dot + 1));
  std::transform(ending.begin(), ending.end(), ending.begin(), [](char letter) {
    return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
  });
  const bool is_image = ending == "jpg" || ending == "jpeg" || ending == "png";
  const Kind kind = is_image           ? Kind::kImage
                    : ending == "cls"  ? Kind::kClass
                    : ending == "json" ? Kind::kJson
                                       : Kind::kOther;
  return {name.substr(0, dot), kind};
}

// Members of one key that stand in a row.
struct Group {
  std::string_view key;
  const TarMember* image = nullptr;
  const TarMember* label = nullptr;
  const TarMember* json = nullptr;
};

class Grouping {
 public:
  explicit Grouping(const TarSource& source) : source_(source), members_(tar_members(source)) {}

  std::vector<TarSample> samples() {
    Group group;
    for (const TarMember& member : members_) {
      const NameParts parts = parts_of(member.name);
      if (parts.kind == Kind::kOther) continue;
      if (parts.key != group.key) {
        finish(group);
        group = {.key = parts.key};
        if (!keys_.insert(parts.key).second) {
          refuse(parts.key, "occurs twice, with other samples between");
        }
      }
      const TarMember*& place = parts.kind == Kind::kImage   ? group.image
                                : parts.kind == Kind::kClass ? group.label
                                                             : group.json;
      if (place != nullptr) {
        refuse(parts.key, cat("has both ", place->name, " and ", member.name));
      }
      place = &member;
    }
    finish(group);
    return std::move(samples_);
  }

 private:
  [[noreturn]] void refuse(std::string_view key, const std::string& what) const {
    throw DataError(cat("tar shard ", source_.path, ": sample ", quoted(key), " ", what,
                        ". Fix: write the shard with one image (.jpg, .jpeg, .png) and one label "
                        "(.cls or .json) a sample, side by side"));
  }

  void finish(const Group& group) {
    if (group.key.empty()) return;
    const TarMember* label = group.label != nullptr ? group.label : group.json;
    if (group.image == nullptr && group.label == nullptr) return;  // a .json alone: of others
    if (group.image == nullptr) refuse(group.key, "has a label and no image");
    if (label == nullptr) refuse(group.key, "has an image and no label");
    samples_.push_back(
        {group.image->offset, group.image->bytes,
         label == group.label ? class_label(group.key, *label) : json_label(group.key, *label),
         group.image->name});
  }

  std::string content_of(std::string_view key, const TarMember& member) const {
    if (member.bytes > kMostLabelBytes) {
      refuse(key, cat("has a label of ", member.bytes, " bytes, at most ", kMostLabelBytes,
                      " are taken"));
    }
    std::string text(static_cast<size_t>(member.bytes), '\0');
    if (!text.empty()) {
      source_.read_at(member.offset, {reinterpret_cast<unsigned char*>(text.data()), text.size()});
    }
    return text;
  }

  int64_t checked(std::string_view key, std::optional<int64_t> label, const TarMember& member,
                  const std::string& text) const {
    if (label && *label >= 0 && *label < kMostLabel) return *label;
    refuse(key, cat("has the label ", quoted(text.substr(0, 40)), " in ", member.name,
                    ", must be a whole number in [0, ", kMostLabel - 1, "]"));
  }

  int64_t class_label(std::string_view key, const TarMember& member) const {
    const std::string text = trimmed(content_of(key, member));
    return checked(key, parse_int64(text), member, text);
  }

  // {"label": 3} or {"cls": 3}.
  int64_t json_label(std::string_view key, const TarMember& member) const {
    const std::string text = content_of(key, member);
    nlohmann::json json;
    try {
      json = parse_json(text, cat(source_.path, ": ", member.name));
    } catch (const ConfigError& error) {
      refuse(key, cat("has a label that is no JSON: ", error.what()));
    }
    const char* name = json.is_object() && json.contains("label") ? "label" : "cls";
    const bool has_it = json.is_object() && json.contains(name) && json[name].is_number_unsigned();
    const std::optional<int64_t> label =
        has_it && json[name].get<uint64_t>() < static_cast<uint64_t>(kMostLabel)
            ? std::optional(json[name].get<int64_t>())
            : std::nullopt;
    return checked(key, label, member, text);
  }

  const TarSource& source_;
  std::vector<TarMember> members_;
  std::unordered_set<std::string_view> keys_;
  std::vector<TarSample> samples_;
};

// Names hold no control characters, so a tab parts them.
constexpr char kNameEnd = '\t';

NumberFacts facts_of(const std::vector<TarSample>& samples) {
  NumberFacts facts;
  for (const TarSample& sample : samples) {
    facts.text += sample.name;
    facts.text += kNameEnd;
    facts.numbers.insert(facts.numbers.end(), {static_cast<int64_t>(sample.offset),
                                               static_cast<int64_t>(sample.bytes), sample.label});
  }
  return facts;
}

std::optional<std::vector<TarSample>> samples_of(const NumberFacts& facts) {
  const std::vector<std::string> names = split(facts.text, kNameEnd);
  if (names.empty() || (names.size() - 1) * 3 != facts.numbers.size()) return std::nullopt;
  std::vector<TarSample> samples;
  for (size_t i = 0; i + 1 < names.size(); ++i) {
    samples.push_back({static_cast<uint64_t>(facts.numbers[3 * i]),
                       static_cast<uint64_t>(facts.numbers[3 * i + 1]), facts.numbers[3 * i + 2],
                       names[i]});
  }
  return samples;
}

}  // namespace

std::vector<TarSample> tar_samples(const TarSource& source) { return Grouping(source).samples(); }

TarShard read_tar_shard(const std::string& path) {
  constexpr const char* kFactsKind = "tar-samples-1";
  const FileStamp stamp = stamp_of(path);
  TarShard shard{.path = path, .bytes = stamp.bytes, .samples = {}, .index_digest = {}};
  const std::optional<NumberFacts> known = cached_facts(stamp, kFactsKind);
  std::optional<std::vector<TarSample>> samples = known ? samples_of(*known) : std::nullopt;
  if (!samples) {
    const FileReader file(path);
    samples =
        tar_samples({path, stamp.bytes, [&file](uint64_t offset, std::span<unsigned char> into) {
                       file.read_at(offset, into);
                     }});
    keep_facts(stamp, kFactsKind, facts_of(*samples));
  }
  shard.samples = std::move(*samples);
  const NumberFacts facts = facts_of(shard.samples);
  Sha256 digest;
  digest.update(facts.text);
  for (const int64_t number : facts.numbers) digest.update(cat(" ", number));
  shard.index_digest = digest.hex();
  return shard;
}

}  // namespace assay::data
