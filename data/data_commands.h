// The subcommands of `assay data`, one file each. For data_command.cpp only.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace assay::data {

// `words` are those behind the verb, `cpus` the threads that are used where --threads names none.
int run_facts_command(const std::string& verb, std::span<const std::string> words, int64_t cpus);
int run_pack_command(std::span<const std::string> words, int64_t cpus);
int run_tokenize_command(std::span<const std::string> words, int64_t cpus);

}  // namespace assay::data
