#include "eval/cli/generated_text.h"

#include <algorithm>
#include <utility>

namespace replayeval {
namespace {

constexpr std::string_view unfinished = "\xEF\xBF\xBD";  // U+FFFD: bytes that are no character

}  // namespace

GeneratedText::GeneratedText(std::shared_ptr<const datasets::Tokenizer> tokenizer,
                             const std::vector<std::string>& stops)
    : tokenizer_(std::move(tokenizer)), stops_(tokenizer_, stops) {
  for (const std::string& stop : stops) held_back_ = std::max(held_back_, stop.size() - 1);
}

std::string GeneratedText::up_to(std::size_t end) {
  const std::string text = stops_.cut(tokenizer_->decode(tokens_, datasets::SpecialTokens::skip));
  end = std::min(end, text.size());
  if (end <= shown_) return "";
  std::string more = text.substr(shown_, end - shown_);
  shown_ = end;
  return more;
}

std::string GeneratedText::add(std::int32_t token) {
  tokens_.push_back(token);
  const std::string text = tokenizer_->decode(tokens_, datasets::SpecialTokens::skip);
  std::size_t end = text.size();
  while (end >= unfinished.size() && text.compare(end - unfinished.size(), unfinished.size(), unfinished) == 0)
    end -= unfinished.size();
  end -= std::min(end, held_back_);
  while (end > 0 && end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return up_to(end);
}

std::string GeneratedText::rest() { return up_to(std::string::npos); }

}  // namespace replayeval
