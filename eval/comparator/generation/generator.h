// Generates the same items under all arms at once: sequences of all arms ride in one batch, and a slot whose sequences
// are done is reset and takes the next item.
//
// Every step has a row for every slot, padded where the slot is free, so that the shapes of a run's products never
// change: a sequence's tokens depend on its item and on the number of slots, not on what the other slots do or did.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "datasets/tokenizer.h"
#include "eval/comparator/generation/sampling.h"
#include "eval/comparator/storage_totals.h"
#include "eval/executors/kernel_clock.h"
#include "eval/model/model.h"

namespace replayeval {

struct GenerationItem {
  std::int64_t item = 0, repeat = 0;  // what draws depend on
  std::vector<std::int32_t> prompt;   // at least one token
  std::int64_t max_tokens = 256;      // generated ones, at most
  std::vector<std::string> stops;
  Sampling sampling;
};

enum class Ending : std::uint8_t { limit, end_token, stop };

struct GeneratedSequence {
  std::vector<std::int32_t> tokens;  // without the end-of-sequence token
  std::vector<bool> ties;            // by step, the end-of-sequence token's too: a greedy choice between equal logits
  Ending ending = Ending::limit;

  bool truncated() const { return ending == Ending::limit; }  // it reached max_tokens
};

struct GenerationOptions {
  std::int64_t slots = 1;
  std::uint64_t seed = 0;
  bool prefill = false;  // prompts as servers compute them; otherwise every token goes through the arms
  std::int64_t block = 256;
  std::set<std::int32_t> end_tokens;  // any of them ends a sequence
};

// What a generator's runs took so far.
struct GenerationCosts {
  std::int64_t steps = 0;             // decode steps, each of all slots
  std::int64_t decoded_tokens = 0;    // of each arm: over the steps, slots that held an item
  std::int64_t generated_tokens = 0;  // of sequences that had not ended, all arms
  std::int64_t prompt_tokens = 0;
  double prompt_seconds = 0.0;  // wall clock of prompts, the arms' part in it included
};

class Generator {
 public:
  // `model` outlives the generator. `capacity`: tokens of the longest prompt and its continuation. Throws
  // std::invalid_argument on no arms, slots or block below 1.
  Generator(const Model& model, std::vector<Arm> arms, std::shared_ptr<const datasets::Tokenizer> tokenizer,
            GenerationOptions options, std::int64_t capacity);
  ~Generator();

  struct Events {
    // An item's sequences, by arm, when all of them are done; items finish in any order.
    std::function<void(const GenerationItem&, std::vector<GeneratedSequence>)> done;
    std::function<void(std::int64_t)> stepped = {};  // how many items a step served
    // A token of a sequence, the end-of-sequence token apart.
    std::function<void(const GenerationItem&, std::size_t arm, std::int32_t token)> token = {};
  };

  // An exception of an event ends the run. Throws std::invalid_argument naming the item on an empty prompt, one that
  // does not fit, or sampling that cannot be; std::runtime_error naming arm and item on logits that are not
  // finite.
  void run(const std::vector<GenerationItem>& items, const Events& events, KernelClock* clock = nullptr);

  const GenerationCosts& costs() const { return costs_; }
  // [arms][mixers], of all decoded tokens: those that an arm decodes after its own end, while others go on, too.
  StorageTotals storage_counts() const;

 private:
  struct Slot;

  void check(const GenerationItem& item) const;
  void admit(std::int32_t index, const GenerationItem& item);
  ChosenTokens choose(const at::Tensor& hidden, const std::vector<std::int32_t>& live,
                      const std::vector<Choice>& choices, KernelClock* clock) const;
  void step(const Events& events, KernelClock* clock);
  void take(Slot& slot, std::size_t arm, std::int32_t token, bool tie, const Events& events);

  const Model& model_;
  std::vector<Arm> arms_;
  std::shared_ptr<const datasets::Tokenizer> tokenizer_;
  GenerationOptions options_;
  std::unique_ptr<DecodeCache> cache_, prompts_;
  std::vector<Slot> slots_;
  GenerationCosts costs_;
};

}  // namespace replayeval
