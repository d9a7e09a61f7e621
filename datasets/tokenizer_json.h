// Tokenizers as the tokenizers library saves them (tokenizer.json), with BPE models.
//
// The same ids as that library (compared by tests/datasets/test_tokenizer_json.py), from text that is UTF-8; other text
// is refused. Every part that decides ids must be one that is supported (see normalizers.h, pre_tokenizers.h, bpe.h,
// token_decoders.h, post_processors.h); another one is refused by name, and so are Unigram, WordPiece and WordLevel
// models. "truncation" and "padding" do not apply: texts are never cut or filled up.
//
// tokenizer_config.json beside it counts as it does to transformers 5's TokenizersBackend: bos_token and eos_token name
// the ids, added_tokens_decoder adds tokens (or sets other flags), and where add_bos_token or add_eos_token is there,
// the two replace the post-processor. special_tokens_map.json names bos and eos where tokenizer_config.json does not.
#pragma once

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "datasets/tokenizer.h"

namespace replayeval::datasets {

// "BPE", "Unigram", ...; files that are older than the member "type" have it when their members are a BPE model's.
// Throws DataError naming the file: not JSON, no model.
std::string tokenizer_json_model_type(const nlohmann::json& document, const std::filesystem::path& file);

// `document` is the content of `file`. Throws DataError naming the file, the place in it and what was expected.
std::unique_ptr<Tokenizer> make_json_tokenizer(const nlohmann::json& document, const std::filesystem::path& file);

}  // namespace replayeval::datasets
