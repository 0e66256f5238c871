// Strict access to the fields of a JSON object on disk: every field must be there, of its type, and
// nothing else may be there. Internal to checkpoints/.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace assay::checkpoints {

// parse_json with CheckpointError instead of ConfigError, since the text is part of a checkpoint.
nlohmann::json parse_checkpoint_json(std::string_view text, const std::string& origin);

// Reads the fields of one object. Borrows the object. Every failure is a CheckpointError that names
// the origin and the field. Call finish() after the last field: it refuses what was not asked for.
class JsonFields {
 public:
  // `place` is put before field names in messages ("scaler."); throws if `object` is no object.
  JsonFields(const nlohmann::json& object, std::string origin, std::string place = "");

  int64_t count(const std::string& key);  // an integer >= 0
  uint64_t size(const std::string& key);  // an integer >= 0 with the whole unsigned range
  std::string text(const std::string& key);
  // `key` holds the number (null if it is not finite) and `key`_hex the exact value.
  double exact_number(const std::string& key);
  std::vector<int64_t> shape(const std::string& key);
  const nlohmann::json& value(const std::string& key);
  const nlohmann::json& array(const std::string& key);
  void finish() const;
  // "manifest.json: field "files[0].bytes" is -1, must be an integer >= 0. Fix: ...".
  [[noreturn]] void refuse(const std::string& key, std::string_view problem) const;

 private:
  const nlohmann::json* object_;
  std::string origin_;
  std::string place_;
  std::set<std::string> asked_;
};

// The pair of fields that exact_number reads. `object` must be a JSON object.
void put_exact_number(nlohmann::ordered_json& object, const std::string& key, double value);

// dump() as text for a file; throws CheckpointError naming `origin` if a text is not UTF-8.
std::string dump_json(const nlohmann::ordered_json& value, const std::string& origin);

}  // namespace assay::checkpoints
