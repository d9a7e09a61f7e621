#include "eval/comparator/generation/stop_strings.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace replayeval {

StopStrings::StopStrings(std::shared_ptr<const datasets::Tokenizer> tokenizer, std::vector<std::string> stops)
    : tokenizer_(std::move(tokenizer)), stops_(std::move(stops)) {
  for (const std::string& stop : stops_) {
    if (stop.empty()) throw std::invalid_argument("stop strings: an empty one; expected text");
    longest_ = std::max(longest_, stop.size());
  }
  if (!stops_.empty() && !tokenizer_) throw std::invalid_argument("stop strings: no tokenizer to find them with");
}

bool StopStrings::reached(const std::vector<std::int32_t>& tokens) const {
  if (stops_.empty()) return false;
  // A token spells at least one byte but for special ones; a stop that the newest token completes lies in the text of
  // the last longest_ + 8 tokens. A piece's leading space may be missing at a cut, so what is found there is looked for
  // in the whole text again.
  const auto held = [this](const std::string& text) {
    return std::any_of(stops_.begin(), stops_.end(),
                       [&](const std::string& stop) { return text.find(stop) != std::string::npos; });
  };
  const std::size_t tail = std::min(tokens.size(), longest_ + 8);
  const std::vector<std::int32_t> last(tokens.end() - static_cast<std::ptrdiff_t>(tail), tokens.end());
  std::string text(1, ' ');
  text.append(tokenizer_->decode(last, datasets::SpecialTokens::skip));
  if (tail < tokens.size() && !held(text)) return false;
  return held(tokenizer_->decode(tokens, datasets::SpecialTokens::skip));
}

std::string StopStrings::cut(const std::string& text) const {
  std::size_t end = text.size();
  for (const std::string& stop : stops_) end = std::min(end, text.find(stop));
  return text.substr(0, end);
}

}  // namespace replayeval
