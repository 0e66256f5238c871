#include "data/tar_index.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "base/text.h"

namespace assay::data {
namespace {

constexpr uint64_t kBlockBytes = 512;
constexpr uint64_t kMostExtraBytes = uint64_t{1} << 20;  // of a pax header or a long name
constexpr size_t kMostNameBytes = 4096;

// POSIX.1-1988 ustar: field, its place and length.
struct FieldPlace {
  size_t begin;
  size_t length;
};
constexpr FieldPlace kName{0, 100};
constexpr FieldPlace kSize{124, 12};
constexpr FieldPlace kChecksum{148, 8};
constexpr size_t kType = 156;
constexpr FieldPlace kMagic{257, 5};
constexpr FieldPlace kPrefix{345, 155};

using Block = std::array<unsigned char, kBlockBytes>;

std::string_view field_of(const Block& block, FieldPlace place) {
  return {reinterpret_cast<const char*>(block.data()) + place.begin, place.length};
}

// Up to the first NUL.
std::string_view text_of(const Block& block, FieldPlace place) {
  const std::string_view field = field_of(block, place);
  return field.substr(0, std::min(field.find('\0'), field.size()));
}

// Octal digits between spaces, ended by NUL or space; or, with the top bit set, 63 bits of a
// big-endian number (GNU).
std::optional<uint64_t> number_of(const Block& block, FieldPlace place) {
  const std::string_view field = field_of(block, place);
  const auto first = static_cast<unsigned char>(field[0]);
  uint64_t value = 0;
  if ((first & 0x80) != 0) {
    if (first != 0x80) return std::nullopt;  // negative, or more than 88 bits
    for (const char byte : field.substr(1)) {
      if ((value >> 55) != 0) return std::nullopt;
      value = value << 8 | static_cast<unsigned char>(byte);
    }
    return value;
  }
  size_t i = std::min(field.find_first_not_of(' '), field.size());
  const size_t begin = i;
  for (; i < field.size() && field[i] >= '0' && field[i] <= '7'; ++i) {
    value = value << 3 | static_cast<uint64_t>(field[i] - '0');
  }
  const bool is_ended = i == field.size() || field[i] == ' ' || field[i] == '\0';
  if (i == begin || !is_ended) return std::nullopt;
  return value;
}

bool is_zero(const Block& block) {
  return std::all_of(block.begin(), block.end(), [](unsigned char byte) { return byte == 0; });
}

// The sum of all bytes with spaces in the field's place; old programs took bytes as signed.
bool has_right_checksum(const Block& block) {
  const std::optional<uint64_t> stored = number_of(block, kChecksum);
  int64_t sum = 0;
  int64_t signed_sum = 0;
  for (size_t i = 0; i < block.size(); ++i) {
    const bool is_field = i >= kChecksum.begin && i < kChecksum.begin + kChecksum.length;
    const unsigned char byte = is_field ? ' ' : block[i];
    sum += byte;
    signed_sum += static_cast<signed char>(byte);
  }
  const auto expected = static_cast<int64_t>(stored.value_or(0));
  return stored && (expected == sum || expected == signed_sum);
}

// What pax and GNU headers say about the member behind them.
struct Extra {
  std::optional<std::string> name;
  std::optional<uint64_t> bytes;
};

class Walk {
 public:
  explicit Walk(const TarSource& source) : source_(source) {}

  std::vector<TarMember> members() {
    while (next()) {
    }
    return std::move(members_);
  }

 private:
  [[noreturn]] void refuse(const std::string& what, std::string_view fix) const {
    throw DataError(
        cat("tar archive ", source_.path, ", byte ", header_at_, ": ", what, ". Fix: ", fix));
  }

  // False at the end of the archive.
  bool next() {
    header_at_ = offset_;
    if (offset_ > source_.bytes || source_.bytes - offset_ < kBlockBytes) {
      refuse(cat("the archive ends here, with ", source_.bytes,
                 " bytes, without the block of zeros that closes one: it was cut off"),
             "copy or write it again");
    }
    source_.read_at(offset_, block_);
    offset_ += kBlockBytes;
    if (is_zero(block_)) return false;
    if (!has_right_checksum(block_)) {
      refuse(offset_ == kBlockBytes
                 ? "this is no tar header: its checksum does not fit (a compressed archive must be "
                   "unpacked)"
                 : "this is no tar header: its checksum does not fit",
             "copy or write the archive again");
    }
    take_header();
    return true;
  }

  void take_header() {
    std::optional<uint64_t> bytes = number_of(block_, kSize);
    const auto type = static_cast<char>(block_[kType]);
    const bool is_extra = type == 'x' || type == 'g' || type == 'L' || type == 'K';
    if (extra_.bytes && !is_extra) bytes = extra_.bytes;
    if (!bytes) refuse("the member's size is no number", "write the archive again");
    if (*bytes > source_.bytes - offset_) {
      refuse(cat("member ", quoted(member_name()), " says it has ", *bytes, " bytes, the archive ",
                 "ends after ", source_.bytes - offset_, ": it was cut off"),
             "copy or write it again");
    }
    const uint64_t content = offset_;
    const uint64_t padding = (kBlockBytes - *bytes % kBlockBytes) % kBlockBytes;
    if (is_extra) {
      take_extra(type, *bytes);
    } else {
      take_member(type, content, *bytes);
      extra_ = {};
    }
    offset_ = content + *bytes + padding;  // both below 2^63
  }

  void take_extra(char type, uint64_t bytes) {
    if (bytes > kMostExtraBytes) {
      refuse(
          cat("an extended header has ", bytes, " bytes, at most ", kMostExtraBytes, " are taken"),
          "write the archive again");
    }
    std::string text(static_cast<size_t>(bytes), '\0');
    if (bytes > 0) {
      source_.read_at(offset_, {reinterpret_cast<unsigned char*>(text.data()), text.size()});
    }
    if (type == 'L') extra_.name = text.substr(0, std::min(text.find('\0'), text.size()));
    if (type == 'x') take_pax(text);
    // 'g' speaks of all members and may set neither name nor size; 'K' names a link's target.
  }

  // Records "<length> <key>=<value>\n", the length counting all of the record.
  void take_pax(std::string_view text) {
    while (!text.empty()) {
      const size_t space = text.find(' ');
      const std::optional<uint64_t> length =
          space == text.npos ? std::nullopt : parse_uint64(text.substr(0, space));
      if (!length || *length <= space + 1 || *length > text.size() ||
          text[static_cast<size_t>(*length) - 1] != '\n') {
        refuse("a pax header is malformed", "write the archive again");
      }
      const auto record_bytes = static_cast<size_t>(*length);
      const std::string_view record = text.substr(space + 1, record_bytes - space - 2);
      text.remove_prefix(record_bytes);
      const size_t equals = record.find('=');
      if (equals == record.npos) refuse("a pax header is malformed", "write the archive again");
      take_record(record.substr(0, equals), record.substr(equals + 1));
    }
  }

  void take_record(std::string_view key, std::string_view value) {
    if (key.starts_with("GNU.sparse")) {
      refuse("a sparse file, which is not taken", "write the archive without --sparse");
    }
    if (key == "path") extra_.name = std::string(value);
    if (key != "size") return;
    extra_.bytes = parse_uint64(value);
    if (!extra_.bytes) {
      refuse(cat("a pax header has the size ", quoted(value), ", no number"),
             "write the archive again");
    }
  }

  std::string member_name() const {
    if (extra_.name) return *extra_.name;
    const std::string_view prefix =
        field_of(block_, kMagic) == "ustar" && block_[kMagic.begin + 5] == 0
            ? text_of(block_, kPrefix)
            : std::string_view();
    const std::string_view name = text_of(block_, kName);
    return prefix.empty() ? std::string(name) : cat(prefix, "/", name);
  }

  void take_member(char type, uint64_t content, uint64_t bytes) {
    std::string name = member_name();
    while (name.starts_with("./")) name.erase(0, 2);
    const bool is_folder = type == '5' || (type == '\0' && name.ends_with('/'));
    if (is_folder && (name.empty() || name == ".")) return;  // the root itself
    check_name(name);
    if (type == '1' || type == '2') {
      refuse(cat("member ", quoted(name), " is a ", type == '1' ? "hard" : "symbolic",
                 " link; links may lead out of the archive and are not followed"),
             "write the archive with the files themselves (tar --dereference --hard-dereference)");
    }
    if (is_folder) return;
    if (type != '0' && type != '\0' && type != '7') {
      refuse(cat("member ", quoted(name), " is of type ", quoted(std::string(1, type)),
                 ", neither a file nor a folder"),
             "write the archive with plain files only");
    }
    members_.push_back({std::move(name), content, bytes});
  }

  void check_name(const std::string& name) const {
    std::string problem;
    if (name.empty()) problem = "is empty";
    if (name.size() > kMostNameBytes) problem = cat("has ", name.size(), " bytes");
    if (name.starts_with('/')) problem = "is absolute";
    for (const std::string& part : split(name, '/')) {
      if (part == "..") problem = "leads out of the archive's folder";
    }
    const bool has_control = std::any_of(name.begin(), name.end(), [](char letter) {
      return static_cast<unsigned char>(letter) < ' ' || letter == '\x7F';
    });
    if (has_control) problem = "has a control character";
    if (problem.empty()) return;
    refuse(cat("the name ", quoted(name.substr(0, 200)), " ", problem,
               "; it must be a relative, printable path without \"..\""),
           "write the archive with such names only");
  }

  const TarSource& source_;
  uint64_t offset_ = 0;     // of the next header
  uint64_t header_at_ = 0;  // of the one at hand, for messages
  Block block_{};
  Extra extra_;
  std::vector<TarMember> members_;
};

}  // namespace

std::vector<TarMember> tar_members(const TarSource& source) { return Walk(source).members(); }

}  // namespace assay::data
