// The tokenizers that recall documents are tested with.
#pragma once

#include <nlohmann/json.hpp>

#include <map>
#include <memory>
#include <string>

#include "datasets/tokenizer.h"
#include "tests/temporary_folder.h"

namespace replayeval::datasets {

inline std::string utf8_of(unsigned code_point) {
  if (code_point < 0x80) return {static_cast<char>(code_point)};
  return {static_cast<char>(0xC0U | (code_point >> 6U)), static_cast<char>(0x80U | (code_point & 0x3FU))};
}

// A byte-level BPE without merges and without a bos: every byte a token, the other extreme to the bundled vocabularies.
inline std::shared_ptr<const Tokenizer> byte_tokenizer() {
  nlohmann::json vocabulary;
  unsigned unprintable = 0;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const bool shown = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    vocabulary[utf8_of(shown ? byte : 256 + unprintable++)] = byte;
  }
  const nlohmann::json document = {
      {"added_tokens", nlohmann::json::array()},
      {"normalizer", nullptr},
      {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}}},
      {"post_processor", nullptr},
      {"decoder", {{"type", "ByteLevel"}}},
      {"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", nlohmann::json::array()}}}};
  const TemporaryFolder folder;
  folder.write("tokenizer.json", document.dump());
  return load_tokenizer(folder.path());
}

// "nemotron", "qwen" (the bundled checkpoints') or "bytes".
inline std::shared_ptr<const Tokenizer> recall_tokenizer(const std::string& name) {
  static std::map<std::string, std::shared_ptr<const Tokenizer>> loaded;
  std::shared_ptr<const Tokenizer>& tokenizer = loaded[name];
  if (!tokenizer && name == "bytes") tokenizer = byte_tokenizer();
  if (!tokenizer)
    tokenizer = load_tokenizer(name == "nemotron" ? "checkpoints/tiny-nemotron-h" : "checkpoints/tiny-qwen3-next");
  return tokenizer;
}

}  // namespace replayeval::datasets
