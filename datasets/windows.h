// Windows over tokenised documents: which tokens the model sees together, and which predictions count.
//
// A document of n tokens is predicted at positions 1 … n-1 (with a bos before it: at all n). Window k decodes the
// `context` tokens from k·stride on; its logits predict the `context` tokens one further. The first window's
// predictions all count, later windows count their last `stride` ones, so that every prediction counts exactly once
// and, but for the first window, with at least context - stride tokens before it. Documents never share a window. With
// a prompt, only predictions made from tokens behind it count: some then never do.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "datasets/token_source.h"

namespace replayeval::datasets {

struct WindowOptions {
  std::int64_t context = 1024;      // tokens decoded in a window, at most; >= 1
  std::int64_t stride = 0;          // 1 … context; 0: context (windows that do not overlap)
  std::optional<std::int32_t> bos;  // put before every document, so that its first token is predicted too
  std::int64_t prompt = 0;      // 0 … context-1: the first tokens of each window, that only lead up to predictions
  std::int64_t max_tokens = 0;  // scored tokens in all; 0: no limit. The last window is cut to meet it exactly
};

struct Window {
  std::int64_t document = 0;         // counts the documents of a WindowReader from 0
  std::int64_t offset = 0;           // position in the document (bos included) of tokens[0]
  std::vector<std::int32_t> tokens;  // decode tokens[0 … size-2]: at most `context`; the last one is only a target
  std::int64_t first_scored = 1;  // index in `tokens` of the first target that counts: targets first_scored … size-1.
                                  // The logits after decoding tokens[i-1] predict tokens[i]
  std::int64_t input_count() const { return static_cast<std::int64_t>(tokens.size()) - 1; }
  std::int64_t scored_count() const { return static_cast<std::int64_t>(tokens.size()) - first_scored; }
};

// The windows of one document, by number: nothing is copied until a window is asked for.
class DocumentWindows {
 public:
  // Throws std::invalid_argument on a context, stride or prompt outside the ranges above. A document without anything
  // to predict (fewer than two tokens behind the prompt, bos included) has no windows. `max_scored` < 0: no limit.
  DocumentWindows(std::vector<std::int32_t> tokens, const WindowOptions& options, std::int64_t max_scored = -1);

  std::int64_t count() const { return count_; }
  std::int64_t scored_count() const { return scored_; }
  Window window(std::int64_t index) const;  // .document is left 0

 private:
  std::int64_t unscored(
      std::int64_t index) const;  // tokens of a window before the first that a prediction is made from

  std::vector<std::int32_t> tokens_;  // bos included, cut to the limit
  std::int64_t context_ = 0, stride_ = 0, prompt_ = 0, count_ = 0, scored_ = 0;
};

struct DocumentInfo {
  std::string source, id;
  std::int64_t tokens = 0;  // of the whole text, without bos
  std::int64_t scored = 0;  // in the windows handed out for it
  std::int64_t bytes = 0;   // of the whole text
};

// Windows of all documents of some sources, in order. Holds one document's text and tokens at a time.
class WindowReader {
 public:
  // Throws std::invalid_argument as DocumentWindows, DataError when a bos is outside the vocabulary.
  WindowReader(std::vector<TextSource> sources, const std::shared_ptr<const Tokenizer>& tokenizer,
               const WindowOptions& options);
  // `tokenizer` describes itself and bounds the bos; null where no source has text.
  WindowReader(std::vector<TokenSource> sources, std::shared_ptr<const Tokenizer> tokenizer,
               const WindowOptions& options);

  std::optional<Window> next();
  // Documents met so far, those without anything to predict included; complete when next() has returned nothing.
  const std::vector<DocumentInfo>& documents() const { return documents_; }
  std::int64_t scored_count() const { return scored_; }  // in the windows returned so far
  void rewind();                                         // the same windows again

  // Numbers known before the run, for a progress bar: tokenises everything once. Does not disturb next().
  struct Totals {
    std::int64_t documents = 0, windows = 0, scored = 0;
  };
  Totals count() const;

  // {sources [...], tokenizer {...} (if there is one), context, stride, bos, max_tokens}, for Workload::data.
  nlohmann::json describe() const;

 private:
  bool open_next_document();

  std::vector<TokenSource> sources_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  WindowOptions options_;
  std::vector<DocumentInfo> documents_;
  std::optional<DocumentWindows> current_;
  std::size_t source_ = 0;
  std::int64_t source_scored_ = 0, scored_ = 0, next_window_ = 0;
};

}  // namespace replayeval::datasets
