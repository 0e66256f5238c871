// tokens.json beside token files: what they were made of and with.
#pragma once

#include <string>

#include "data/tokenize.h"

namespace assay::data {

constexpr const char* kTokenManifestName = "tokens.json";

std::string token_manifest_text(const Tokenizer& tokenizer, const TokenizeRequest& request,
                                const TokenizeResult& result);

// Compares the token files of a folder with the manifest in it, if there is one: sizes, SHA-256
// and token counts. Returns the number of files that were compared; throws DataError naming file,
// got and expected. `files` are those that were opened.
int64_t check_token_manifest(const std::string& folder, std::span<const SourceFile> files);

}  // namespace assay::data
