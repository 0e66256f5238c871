#include "harness/report/strings.h"

#include "base/error.h"
#include "base/text.h"

namespace assay::harness {
namespace {

const strings_detail::Entry* find_entry(std::string_view key) {
  for (const auto& entries : {strings_detail::heading_entries(), strings_detail::check_entries()}) {
    for (const strings_detail::Entry& entry : entries) {
      if (entry.key == key) return &entry;
    }
  }
  return nullptr;
}

}  // namespace

Language parse_language(std::string_view name) {
  if (name == "en") return Language::kEnglish;
  if (name == "zh") return Language::kChinese;
  throw ConfigError(cat("--lang is ", assay::quoted(name), ", must be en or zh. Fix: --lang en"));
}

std::string_view language_tag(Language language) {
  return language == Language::kChinese ? "zh-CN" : "en";
}

std::string_view report_text(Language language, std::string_view key) {
  const strings_detail::Entry* entry = find_entry(key);
  if (entry == nullptr) throw InternalError(cat("the reports have no text for ", key));
  return language == Language::kChinese ? entry->chinese : entry->english;
}

bool has_report_text(std::string_view key) { return find_entry(key) != nullptr; }

}  // namespace assay::harness
