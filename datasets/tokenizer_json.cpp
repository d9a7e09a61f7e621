#include "datasets/tokenizer_json.h"

#include <fmt/format.h>

#include <limits>
#include <utility>

#include "datasets/added_tokens.h"
#include "datasets/bpe.h"
#include "datasets/normalizers.h"
#include "datasets/post_processors.h"
#include "datasets/pre_tokenizers.h"
#include "datasets/sha256.h"
#include "datasets/token_decoders.h"
#include "datasets/tokenizer_config.h"
#include "datasets/utf8.h"

namespace replayeval::datasets {
namespace {

// A part that may be missing or null.
template <typename Part>
std::unique_ptr<Part> make_if_any(const JsonNode& root, const char* key,
                                  std::unique_ptr<Part> (*make)(const JsonNode&)) {
  const auto node = root.find(key);
  return node ? make(*node) : nullptr;
}

// One file: its hash. Several: of the lines that sha256sum prints for them.
std::string hash_of(const std::filesystem::path& file, const std::vector<std::filesystem::path>& others) {
  if (others.empty()) return sha256_file(file);
  std::string lines = fmt::format("{}  {}\n", sha256_file(file), file.filename().string());
  for (const auto& other : others) lines += fmt::format("{}  {}\n", sha256_file(other), other.filename().string());
  return sha256_hex(lines);
}

class JsonTokenizer final : public Tokenizer {
 public:
  JsonTokenizer(const JsonNode& root, const std::filesystem::path& file)
      : file_(file),
        bpe_(root.at("model")),
        normalizer_(make_if_any(root, "normalizer", &make_normalizer)),
        pre_tokenizer_(make_if_any(root, "pre_tokenizer", &make_pre_tokenizer)),
        decoder_(make_if_any(root, "decoder", &make_token_decoder)) {
    const TokenizerConfig config = read_tokenizer_config(file.parent_path());
    sha256_ = hash_of(file, config.files);
    add_tokens(root, config);
    vocab_size_ = std::int64_t{std::max(bpe_.largest_id(), added_.largest_id())} + 1;
    if (vocab_size_ == 0) root.at("model").at("vocab").fail("is empty; expected tokens");
    set_special_tokens(root, config);
  }

  std::vector<std::int32_t> encode(std::string_view text) const override {
    if (const auto fault = find_utf8_fault(text)) {
      throw DataError(fmt::format("text to encode: byte {}: found {}, expected UTF-8", fault->offset, fault->found));
    }
    if (text.size() > max_text_bytes) {
      throw DataError(fmt::format("text to encode: {} bytes; expected at most {}", text.size(), max_text_bytes));
    }
    TextPieces pieces = added_.split(text, normalizer_.get());
    if (pre_tokenizer_) pre_tokenizer_->apply(pieces);
    std::vector<std::int32_t> ids;
    ids.reserve(pieces.pieces.size() + pieces.pieces.size() / 2);
    Bpe::Encoder encoder(bpe_);
    for (const TextPiece& piece : pieces.pieces) {
      if (piece.token >= 0) {
        ids.push_back(piece.token);
      } else {
        encoder.append(pieces.of(piece), ids);
      }
    }
    return ids;
  }

  std::string decode(std::span<const std::int32_t> ids, SpecialTokens special) const override {
    std::vector<std::string> tokens;
    tokens.reserve(ids.size());
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const std::string& token = spelling(ids[i], i);
      if (special == SpecialTokens::keep || !added_.is_special(ids[i])) tokens.push_back(token);
    }
    if (decoder_) decoder_->apply(tokens);
    std::string text;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (!decoder_ && i > 0) text += ' ';
      text += tokens[i];
    }
    return text;
  }

  std::vector<std::int32_t> add_special_tokens(std::vector<std::int32_t> ids) const override {
    ids.insert(ids.begin(), around_.before.begin(), around_.before.end());
    ids.insert(ids.end(), around_.after.begin(), around_.after.end());
    return ids;
  }

  std::string piece(std::int32_t id) const override { return spelling(id, 0); }
  std::int64_t vocab_size() const override { return vocab_size_; }
  std::optional<std::int32_t> bos_id() const override { return bos_; }
  std::optional<std::int32_t> eos_id() const override { return eos_; }
  const std::string& kind() const override { return kind_; }
  const std::filesystem::path& file() const override { return file_; }
  const std::string& sha256() const override { return sha256_; }

 private:
  static constexpr std::size_t max_text_bytes = std::numeric_limits<std::int32_t>::max() / 4;

  void add_tokens(const JsonNode& root, const TokenizerConfig& config) {
    if (const auto tokens = root.find("added_tokens")) {
      for (const JsonNode& token : tokens->elements()) {
        const auto id = token.at("id").integer(0, std::numeric_limits<std::int32_t>::max() - 1);
        added_.add(parse_added_token(token), id, bpe_, token);
      }
    }
    for (const auto& [id, token] : config.added_tokens) added_.add(parse_added_token(token), id, bpe_, token);
    added_.prepare(normalizer_.get(), root.place());
  }

  std::optional<std::int32_t> id_of(const std::optional<std::string>& token, const char* key,
                                    const TokenizerConfig& config) const {
    if (!token) return std::nullopt;
    if (const std::int32_t id = added_.id_of(*token); id >= 0) return id;
    if (const auto id = bpe_.id(*token)) return id;
    throw DataError(fmt::format("{}: {}: '{}' is not in the vocabulary; expected one of its tokens",
                                config.files.front().string(), key, *token));
  }

  void set_special_tokens(const JsonNode& root, const TokenizerConfig& config) {
    bos_ = id_of(config.bos_token, "bos_token", config);
    eos_ = id_of(config.eos_token, "eos_token", config);
    const auto processor = root.find("post_processor");
    if (processor) around_ = parse_post_processor(*processor);
    check_surrounding(*this, root);
    if (!config.add_bos_token && !config.add_eos_token) return;
    around_ = {};
    if (config.add_bos_token.value_or(false) && bos_) around_.before = {*bos_};
    if (config.add_eos_token.value_or(false) && eos_) around_.after = {*eos_};
  }

  static void check_surrounding(const JsonTokenizer& tokenizer, const JsonNode& root) {
    for (const auto* ids : {&tokenizer.around_.before, &tokenizer.around_.after}) {
      for (const std::int32_t id : *ids) {
        if (tokenizer.find_spelling(id) == nullptr) {
          root.at("post_processor").fail(fmt::format("id {} is not in the vocabulary; expected one of its ids", id));
        }
      }
    }
  }

  const std::string* find_spelling(std::int32_t id) const {
    const std::string* added = added_.spelling(id);
    return added != nullptr ? added : bpe_.token(id);
  }

  const std::string& spelling(std::int32_t id, std::size_t place) const {
    const std::string* found = find_spelling(id);
    if (found == nullptr) {
      const bool outside = id < 0 || id >= vocab_size_;
      throw DataError(fmt::format("{}: token id {} at place {} {}; expected 0 … {}", file_.string(), id, place,
                                  outside ? "is outside the vocabulary" : "has no token in the vocabulary",
                                  vocab_size_ - 1));
    }
    return *found;
  }

  const std::string kind_ = "bpe";
  std::filesystem::path file_;
  std::string sha256_;
  Bpe bpe_;
  std::unique_ptr<Normalizer> normalizer_;
  std::unique_ptr<PreTokenizer> pre_tokenizer_;
  std::unique_ptr<TokenDecoder> decoder_;
  AddedTokens added_;
  SurroundingTokens around_;
  std::int64_t vocab_size_ = 0;
  std::optional<std::int32_t> bos_, eos_;
};

}  // namespace

std::string tokenizer_json_model_type(const nlohmann::json& document, const std::filesystem::path& file) {
  const JsonNode root(document, file.string());
  const JsonNode model = root.at("model");
  if (const auto type = model.find("type")) return type->string();
  return model.find("merges") ? "BPE" : model.at("type").string();  // the latter throws: it is missing
}

std::unique_ptr<Tokenizer> make_json_tokenizer(const nlohmann::json& document, const std::filesystem::path& file) {
  const JsonNode root(document, file.string());
  const std::string type = tokenizer_json_model_type(document, file);
  if (type != "BPE") {
    root.at("model").fail(fmt::format("type '{}' is not supported; expected 'BPE'", type));
  }
  return std::make_unique<JsonTokenizer>(root, file);
}

}  // namespace replayeval::datasets
