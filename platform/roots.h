// Where the kernel's trees (/proc, /sys, /dev, /run) are read from, and the few facts that do not
// come from files. Tests point it at a fixture folder; nothing here throws on a missing file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::platform {

struct Roots {
  std::string prefix;         // put before every absolute path; empty: the real machine
  int64_t affinity_cpus = 0;  // CPUs in this process's affinity mask; 0: ask the kernel
  std::string nvml_library = "libnvidia-ml.so.1";
};

// Content of a small file without white space at both ends; nothing if it cannot be read.
std::optional<std::string> read_text(const Roots& roots, std::string_view path);

// A file that holds one integer, decimal or "0x..." hexadecimal; nothing if it holds anything else.
std::optional<int64_t> read_integer(const Roots& roots, std::string_view path);

// Names in a folder, sorted, without "." and ".."; empty if it cannot be read.
std::vector<std::string> list_names(const Roots& roots, std::string_view path);

bool exists(const Roots& roots, std::string_view path);

// Number of members in a kernel list such as "0-3,8,10-11"; 0 if it is malformed or empty.
int64_t count_kernel_list(std::string_view list);

// Value of "key : value" or "key: value" in text of many lines; nothing if no line has that key.
std::optional<std::string> keyed_value(std::string_view text, std::string_view key);

// Words of a line, separated by any number of blanks or tabs.
std::vector<std::string> words_of(std::string_view line);

}  // namespace assay::platform
