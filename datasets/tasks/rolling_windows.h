// A text in pieces that a model can see at once, each token scored once.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace replayeval::tasks {

// What one forward pass scores. The model reads context and continuation but for the last token; its last
// continuation.size() logits predict the continuation. Neither is empty, and together they have at most max_length + 1
// tokens.
struct ScoringRequest {
  std::vector<std::int32_t> context, continuation;
};

// get_rolling_token_windows with a context of one token, and make_disjoint_window, of the harness: the first window
// holds `prefix` and the first max_length tokens, later ones their share of at most max_length tokens behind as many
// tokens before them as fill the window (at least one). Empty for no tokens. max_length >= 1.
std::vector<ScoringRequest> rolling_windows(std::span<const std::int32_t> tokens, std::int32_t prefix,
                                            std::int64_t max_length);

}  // namespace replayeval::tasks
