#include "datasets/sentencepiece_tokenizer.h"

#include <fmt/format.h>
#include <sentencepiece_processor.h>

#include "datasets/added_tokens.h"
#include "datasets/sha256.h"
#include "datasets/utf8.h"

namespace replayeval::datasets {
namespace {

std::optional<std::int32_t> id_if_any(int id) {
  return id >= 0 ? std::optional<std::int32_t>(id) : std::nullopt;  // sentencepiece says -1 for none
}

class SentencePiece final : public Tokenizer {
 public:
  explicit SentencePiece(const std::filesystem::path& file) : file_(file), sha256_(sha256_file(file)) {
    const auto status = processor_.Load(file.string());
    if (!status.ok() || processor_.GetPieceSize() == 0) {
      throw DataError(file.string() +
                      ": not a sentencepiece model (expected a serialized ModelProto with a vocabulary)");
    }
    bos_ = id_if_any(processor_.bos_id());
    eos_ = id_if_any(processor_.eos_id());
    for (int id = 0; id < processor_.GetPieceSize(); ++id) {
      if (processor_.IsControl(id) || processor_.IsUnknown(id)) control_.add(processor_.IdToPiece(id), id);
    }
    control_.prepare();
  }

  std::vector<std::int32_t> encode(std::string_view text) const override {
    if (const auto fault = find_utf8_fault(text)) {
      throw DataError(fmt::format("text to encode: byte {}: found {}, expected UTF-8", fault->offset, fault->found));
    }
    std::vector<std::int32_t> ids;
    for (std::size_t begin = 0; begin < text.size();) {
      const TextFinder::Found control = control_.find(text, begin);
      const std::size_t end = control.token < 0 ? text.size() : control.begin;
      append(text.substr(begin, end - begin), ids);
      if (control.token >= 0) ids.push_back(control.token);
      begin = control.token < 0 ? end : control.end;
    }
    return ids;
  }

  // The model says nothing about it: a bos and no eos, as Llama's tokenizer has it.
  std::vector<std::int32_t> add_special_tokens(std::vector<std::int32_t> ids) const override {
    if (bos_) ids.insert(ids.begin(), *bos_);
    return ids;
  }

  std::string decode(std::span<const std::int32_t> ids, SpecialTokens) const override {
    for (std::size_t i = 0; i < ids.size(); ++i) {
      check_id(ids[i], i);
    }
    std::string text;
    const auto status = processor_.Decode(std::vector<int>(ids.begin(), ids.end()), &text);
    if (!status.ok()) {
      throw DataError(fmt::format("{}: cannot decode: {}", file_.string(), status.ToString()));
    }
    return text;
  }

  std::string piece(std::int32_t id) const override {
    check_id(id, 0);
    return processor_.IdToPiece(id);
  }

  std::int64_t vocab_size() const override { return processor_.GetPieceSize(); }
  std::optional<std::int32_t> bos_id() const override { return bos_; }
  std::optional<std::int32_t> eos_id() const override { return eos_; }
  const std::string& kind() const override { return kind_; }
  const std::filesystem::path& file() const override { return file_; }
  const std::string& sha256() const override { return sha256_; }

 private:
  // The ids of text without control tokens.
  void append(std::string_view text, std::vector<std::int32_t>& ids) const {
    std::vector<int> part;
    const auto status = processor_.Encode({text.data(), text.size()}, &part);
    if (!status.ok()) {
      throw DataError(fmt::format("{}: cannot encode the text: {}", file_.string(), status.ToString()));
    }
    ids.insert(ids.end(), part.begin(), part.end());
  }

  void check_id(std::int32_t id, std::size_t place) const {
    if (id < 0 || id >= vocab_size()) {
      throw DataError(fmt::format("{}: token id {} at place {} is outside the vocabulary; expected 0 … {}",
                                  file_.string(), id, place, vocab_size() - 1));
    }
  }

  const std::string kind_ = "sentencepiece";
  std::filesystem::path file_;
  std::string sha256_;
  sentencepiece::SentencePieceProcessor processor_;
  TextFinder control_;  // sentencepiece alone takes their spellings for text
  std::optional<std::int32_t> bos_, eos_;
};

}  // namespace

std::unique_ptr<Tokenizer> load_sentencepiece(const std::filesystem::path& file) {
  return std::make_unique<SentencePiece>(file);
}

}  // namespace replayeval::datasets
