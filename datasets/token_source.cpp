#include "datasets/token_source.h"

#include <fmt/format.h>

#include <utility>

namespace replayeval::datasets {

TokenSource::TokenSource(TextSource text, std::shared_ptr<const Tokenizer> tokenizer)
    : documents_(std::move(text)), tokenizer_(std::move(tokenizer)) {}

TokenSource::TokenSource(RandomIds ids) : documents_(std::move(ids)) {}

std::optional<TokenDocument> TokenSource::next() {
  if (auto* text = std::get_if<TextSource>(&documents_)) {
    std::optional<Document> document = text->next();
    if (!document) return std::nullopt;
    std::vector<std::int32_t> tokens = tokenizer_->encode(document->text);
    return TokenDocument{std::move(document->source), std::move(document->id), std::move(tokens),
                         static_cast<std::int64_t>(document->text.size())};
  }
  const auto& ids = std::get<RandomIds>(documents_);
  if (next_ == ids.spec().documents) return std::nullopt;
  const std::int64_t number = next_++;
  return TokenDocument{ids.spec().name, fmt::format("#{}", number), ids.document(number), 0};
}

void TokenSource::rewind() {
  next_ = 0;
  if (auto* text = std::get_if<TextSource>(&documents_)) text->rewind();
}

std::int64_t TokenSource::max_tokens() const {
  const auto* text = std::get_if<TextSource>(&documents_);
  return text == nullptr ? 0 : text->spec().max_tokens;
}

nlohmann::json TokenSource::describe() const {
  return std::visit([](const auto& documents) { return documents.describe(); }, documents_);
}

}  // namespace replayeval::datasets
