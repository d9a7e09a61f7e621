// Generates the same items under all arms at once: sequences of all arms ride in one batch, and a slot whose sequences
// are done is reset and takes the next item.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "datasets/tokenizer.h"
#include "eval/executors/kernel_clock.h"
#include "eval/model/model.h"

namespace replayeval {

struct GenerationItem {
  std::int64_t item = 0, repeat = 0;  // what draws depend on
  std::vector<std::int32_t> prompt;   // at least one token
  std::int64_t max_tokens = 256;      // generated ones, at most
  std::vector<std::string> stops;
};

struct GeneratedSequence {
  std::vector<std::int32_t> tokens;  // without the end-of-sequence token
  std::vector<bool> ties;            // by step: the choice was between two equal logits
  bool truncated = false;            // reached max_tokens
};

struct GenerationOptions {
  std::int64_t slots = 1;
  double temperature = 0.0;  // 0: greedy
  std::uint64_t seed = 0;
  bool prefill = false;  // prompts as servers compute them; otherwise every token goes through the arms
  std::int64_t block = 256;
  std::set<std::int32_t> end_tokens;  // any of them ends a sequence
};

class Generator {
 public:
  // `model` outlives the generator. `capacity`: tokens of the longest prompt and its continuation. Throws
  // std::invalid_argument on no arms, slots below 1, a negative temperature.
  Generator(const Model& model, std::vector<Arm> arms, std::shared_ptr<const datasets::Tokenizer> tokenizer,
            GenerationOptions options, std::int64_t capacity);
  ~Generator();

  // An item's sequences, by arm, when all of them are done; items finish in any order.
  using Done = std::function<void(const GenerationItem&, std::vector<GeneratedSequence>)>;

  // Throws std::invalid_argument naming the item on an empty prompt or one that does not fit, std::runtime_error on
  // logits that are not finite.
  void run(const std::vector<GenerationItem>& items, const Done& done, KernelClock* clock = nullptr);

  std::int64_t steps() const { return steps_; }                        // decode steps so far, each of all live slots
  std::int64_t generated_tokens() const { return generated_tokens_; }  // of sequences that had not ended, all arms

 private:
  struct Slot;

  void check(const GenerationItem& item) const;
  void admit(std::int32_t slot, const GenerationItem& item);
  void step(const Done& done, KernelClock* clock);
  void take(Slot& slot, std::size_t arm, std::int32_t token, bool tie);

  const Model& model_;
  std::vector<Arm> arms_;
  std::shared_ptr<const datasets::Tokenizer> tokenizer_;
  GenerationOptions options_;
  std::unique_ptr<DecodeCache> cache_, prompts_;
  std::vector<Slot> slots_;
  std::int64_t steps_ = 0, generated_tokens_ = 0;
};

}  // namespace replayeval
