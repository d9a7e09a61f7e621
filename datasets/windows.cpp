#include "datasets/windows.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace replayeval::datasets {
namespace {

std::int64_t checked_stride(const WindowOptions& options) {
  if (options.context < 1) {
    throw std::invalid_argument(fmt::format("windows: context is {}; expected 1 or more", options.context));
  }
  const std::int64_t stride = options.stride == 0 ? options.context : options.stride;
  if (stride < 1 || stride > options.context) {
    throw std::invalid_argument(
        fmt::format("windows: stride is {}; expected 1 … {} (the context)", options.stride, options.context));
  }
  if (options.prompt < 0 || options.prompt >= options.context) {
    throw std::invalid_argument(fmt::format("windows: prompt is {}; expected 0 … {} (less than the context)",
                                            options.prompt, options.context - 1));
  }
  if (options.max_tokens < 0) {
    throw std::invalid_argument(
        fmt::format("windows: max_tokens is {}; expected 0 (no limit) or more", options.max_tokens));
  }
  return stride;
}

std::vector<TokenSource> token_sources(std::vector<TextSource> texts,
                                       const std::shared_ptr<const Tokenizer>& tokenizer) {
  std::vector<TokenSource> sources;
  for (TextSource& text : texts) {
    sources.emplace_back(std::move(text), tokenizer);
  }
  return sources;
}

}  // namespace

DocumentWindows::DocumentWindows(std::vector<std::int32_t> tokens, const WindowOptions& options,
                                 std::int64_t max_scored)
    : tokens_(std::move(tokens)), context_(options.context), stride_(checked_stride(options)), prompt_(options.prompt) {
  if (options.bos) {
    tokens_.insert(tokens_.begin(), *options.bos);
  }
  const std::int64_t inputs = static_cast<std::int64_t>(tokens_.size()) - 1;  // the last token is only a target
  // Window k predicts from the tokens begin … end-1 of the document, and no two windows from the same.
  for (std::int64_t begin = unscored(0); begin < inputs; begin = count_ * stride_ + unscored(count_)) {
    const std::int64_t end = std::min(inputs, count_ * stride_ + context_);
    const std::int64_t taken = max_scored < 0 ? end - begin : std::min(end - begin, max_scored - scored_);
    if (taken == 0) break;
    ++count_;
    scored_ += taken;
    if (scored_ == max_scored) {
      tokens_.resize(static_cast<std::size_t>(begin + taken + 1));
      break;
    }
  }
}

std::int64_t DocumentWindows::unscored(std::int64_t index) const {
  return std::max(prompt_, index == 0 ? 0 : context_ - stride_);  // where the window before ended
}

Window DocumentWindows::window(std::int64_t index) const {
  if (index < 0 || index >= count_) {
    throw std::out_of_range(fmt::format("windows: no window {}; the document has {}", index, count_));
  }
  const std::int64_t begin = index * stride_;
  const std::int64_t end = std::min(begin + context_ + 1, static_cast<std::int64_t>(tokens_.size()));
  Window window;
  window.offset = begin;
  window.tokens.assign(tokens_.begin() + begin, tokens_.begin() + end);
  window.first_scored = unscored(index) + 1;
  return window;
}

WindowReader::WindowReader(std::vector<TextSource> sources, const std::shared_ptr<const Tokenizer>& tokenizer,
                           const WindowOptions& options)
    : WindowReader(token_sources(std::move(sources), tokenizer), tokenizer, options) {}

WindowReader::WindowReader(std::vector<TokenSource> sources, std::shared_ptr<const Tokenizer> tokenizer,
                           const WindowOptions& options)
    : sources_(std::move(sources)), tokenizer_(std::move(tokenizer)), options_(options) {
  options_.stride = checked_stride(options);
  if (options_.bos && tokenizer_ && (*options_.bos < 0 || *options_.bos >= tokenizer_->vocab_size())) {
    throw DataError(fmt::format("{}: bos {} is outside the vocabulary; expected 0 … {}", tokenizer_->file().string(),
                                *options_.bos, tokenizer_->vocab_size() - 1));
  }
  rewind();
}

void WindowReader::rewind() {
  for (TokenSource& source : sources_) {
    source.rewind();
  }
  documents_.clear();
  current_.reset();
  source_ = 0;
  source_scored_ = scored_ = next_window_ = 0;
}

// Moves on to the next document, scorable or not. False when sources or the limit of tokens are used up.
bool WindowReader::open_next_document() {
  while (source_ < sources_.size()) {
    TokenSource& source = sources_[source_];
    // What the limits leave; -1 as long as none is set.
    std::int64_t left = options_.max_tokens > 0 ? options_.max_tokens - scored_ : -1;
    if (source.max_tokens() > 0) {
      const std::int64_t left_here = source.max_tokens() - source_scored_;
      left = left < 0 ? left_here : std::min(left, left_here);
    }
    std::optional<TokenDocument> document = left == 0 ? std::nullopt : source.next();
    if (!document) {
      ++source_;
      source_scored_ = 0;
      continue;
    }
    documents_.push_back({.source = std::move(document->source),
                          .id = std::move(document->id),
                          .tokens = static_cast<std::int64_t>(document->tokens.size()),
                          .scored = 0,
                          .bytes = document->bytes});
    current_.emplace(std::move(document->tokens), options_, left);
    next_window_ = 0;
    return true;
  }
  return false;
}

std::optional<Window> WindowReader::next() {
  while (!current_ || next_window_ == current_->count()) {
    if (!open_next_document()) {
      return std::nullopt;
    }
  }
  Window window = current_->window(next_window_++);
  window.document = static_cast<std::int64_t>(documents_.size()) - 1;
  documents_.back().scored += window.scored_count();
  source_scored_ += window.scored_count();
  scored_ += window.scored_count();
  return window;
}

WindowReader::Totals WindowReader::count() const {
  WindowReader reader(sources_, tokenizer_, options_);  // copies of the sources have a place of their own
  Totals totals;
  while (reader.open_next_document()) {
    totals.windows += reader.current_->count();
    totals.scored += reader.current_->scored_count();
    reader.source_scored_ += reader.current_->scored_count();
    reader.scored_ += reader.current_->scored_count();
  }
  totals.documents = static_cast<std::int64_t>(reader.documents_.size());
  return totals;
}

nlohmann::json WindowReader::describe() const {
  nlohmann::json sources = nlohmann::json::array();
  for (const TokenSource& source : sources_) {
    sources.push_back(source.describe());
  }
  nlohmann::json description = {
      {"sources", std::move(sources)},
      {"context", options_.context},
      {"stride", options_.stride},
      {"max_tokens", options_.max_tokens},
  };
  if (tokenizer_) {
    description["tokenizer"] = {
        {"kind", tokenizer_->kind()}, {"sha256", tokenizer_->sha256()}, {"vocab_size", tokenizer_->vocab_size()}};
  }
  description["bos"] = options_.bos ? nlohmann::json(*options_.bos) : nlohmann::json();
  return description;
}

}  // namespace replayeval::datasets
