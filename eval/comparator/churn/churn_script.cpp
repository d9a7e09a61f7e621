#include "eval/comparator/churn/churn_script.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <utility>

#include "datasets/recall/random.h"

namespace replayeval {
namespace {

using What = ChurnAction::What;

struct Sequence {
  ChurnSequence plan;
  std::int64_t position = 0;  // tokens so far
  std::int64_t prefilled = 0;
  std::int32_t slot = -1;
  ChurnKind came = ChurnKind::admission;
  // Its saved prefix, of so many tokens; 0: none.
  std::int64_t saved = 0, saved_prefilled = 0, place = 0;
};

class Server {
 public:
  Server(const WorkloadConfig& workload, std::int64_t slots, std::int64_t sequences, bool calm)
      : workload_(workload), config_(*workload.churn), calm_(calm), random_(config_.seed) {
    random_.mix(static_cast<std::uint64_t>(slots));
    script_.slots = slots;
    script_.places = std::max<std::int64_t>(2, slots / 8);
    in_slot_.assign(static_cast<std::size_t>(slots), -1);
    for (std::int64_t place = script_.places - 1; place >= 0; --place) free_places_.push_back(place);
    for (std::int64_t number = 0; number < sequences; ++number) {
      sequences_.push_back({churn_sequence(workload, number), 0, 0, -1, ChurnKind::admission, 0, 0, 0});
      waiting_.push_back(number);
    }
  }

  ChurnScript run() {
    for (std::int64_t step = 0; !waiting_.empty() || live() > 0; ++step) {
      disturb(step);
      fill_slots();
      decode_step(step);
      dismiss_done();
    }
    check_script();
    return std::move(script_);
  }

 private:
  bool chance(double p) { return random_.unit() < p; }
  std::int64_t live() const {
    return std::count_if(in_slot_.begin(), in_slot_.end(), [](std::int64_t sequence) { return sequence >= 0; });
  }
  Sequence& at(std::int64_t number) { return sequences_[static_cast<std::size_t>(number)]; }
  ChurnRow row_of(std::int64_t number) {
    const Sequence& sequence = at(number);
    return {sequence.slot, number, sequence.position, sequence.prefilled, sequence.came};
  }
  void act(What what, std::int64_t number, std::int64_t tokens, std::int64_t place = 0) {
    script_.actions.push_back({what, tokens, place, {row_of(number)}});
  }

  void disturb(std::int64_t step) {
    if (calm_) return;
    if (!config_.script.empty()) return follow(step);
    for (const std::int64_t number : std::vector<std::int64_t>(in_slot_)) {
      if (number < 0) continue;
      if (chance(config_.save)) save(number);
      if (chance(config_.evict)) evict(number);
    }
  }

  void follow(std::int64_t step) {
    for (const ChurnEvent& event : config_.script) {
      if (event.step != step || event.what == ChurnEvent::What::pad) continue;
      if (event.value >= static_cast<std::int64_t>(sequences_.size()) || at(event.value).slot < 0)
        throw ConfigError(fmt::format(
            "{}: key 'script': sequence {} is in no slot at step {} of a batch of {}; expected one under way",
            event.place, event.value, step, script_.slots));
      if (event.what == ChurnEvent::What::save)
        save(event.value);
      else
        evict(event.value);
    }
  }

  void check_script() const {
    if (calm_) return;
    for (const ChurnEvent& event : config_.script)
      if (event.step >= steps_)
        throw ConfigError(
            fmt::format("{}: key 'script': step {} never comes; expected at most {}, the last one of a batch of {}",
                        event.place, event.step, steps_ - 1, script_.slots));
  }

  void save(std::int64_t number) {
    Sequence& sequence = at(number);
    if (sequence.saved == 0) {
      if (free_places_.empty()) return;
      sequence.place = free_places_.back();
      free_places_.pop_back();
    }
    sequence.saved = sequence.position;
    sequence.saved_prefilled = sequence.prefilled;
    act(What::save, number, sequence.position, sequence.place);
    ++script_.events["save"];
  }

  void evict(std::int64_t number) {
    leave(number);
    waiting_.push_back(number);
    ++script_.events["evict"];
  }

  void leave(std::int64_t number) {
    Sequence& sequence = at(number);
    act(What::leave, number, sequence.position);
    in_slot_[static_cast<std::size_t>(sequence.slot)] = -1;
    sequence.slot = -1;
  }

  // A few at a time, so that they come while others are under way.
  void fill_slots() {
    const std::int64_t slots = script_.slots;
    if (calm_ && live() > 0) return;
    for (std::int64_t came = 0; !waiting_.empty() && live() < slots && (calm_ || came < (slots + 3) / 4); ++came) {
      const std::int64_t number = waiting_.front();
      waiting_.pop_front();
      std::int64_t slot = calm_ ? came : static_cast<std::int64_t>(random_.below(static_cast<std::size_t>(slots)));
      while (in_slot_[static_cast<std::size_t>(slot)] >= 0) slot = (slot + 1) % slots;
      in_slot_[static_cast<std::size_t>(slot)] = number;
      at(number).slot = static_cast<std::int32_t>(slot);
      ++script_.stays;
      come_in(number);
    }
  }

  void come_in(std::int64_t number) {
    Sequence& sequence = at(number);
    if (sequence.position == 0) {
      const bool one = sequence.plan.prompt > 1 && sequence.plan.prompt % workload_.block == 1;
      return compute(number, sequence.plan.prompt, one ? ChurnKind::one_token_chunk : ChurnKind::admission);
    }
    if (sequence.saved == 0) return compute(number, sequence.position, ChurnKind::recomputation);
    sequence.came = ChurnKind::restore;
    sequence.prefilled = sequence.saved_prefilled;
    const std::int64_t until = std::exchange(sequence.position, sequence.saved);
    act(What::restore, number, sequence.saved, sequence.place);
    free_places_.push_back(sequence.place);
    sequence.saved = 0;
    ++script_.events[std::string(churn_kind_name(ChurnKind::restore))];
    decode_alone(number, until);
  }

  void compute(std::int64_t number, std::int64_t tokens, ChurnKind came) {
    Sequence& sequence = at(number);
    sequence.came = came;
    sequence.position = 0;
    ++script_.events[std::string(churn_kind_name(came))];
    sequence.prefilled = workload_.prompt == Prompt::prefill ? tokens : 0;
    if (workload_.prompt == Prompt::decode) return decode_alone(number, tokens);
    act(What::prefill, number, tokens);
    sequence.position = tokens;
  }

  void decode_alone(std::int64_t number, std::int64_t until) {
    Sequence& sequence = at(number);
    while (sequence.position < until) {
      const std::int64_t tokens = std::min(workload_.block, until - sequence.position);
      act(What::decode, number, tokens);
      sequence.position += tokens;
    }
  }

  void decode_step(std::int64_t step) {
    ++steps_;
    ChurnAction call;
    call.tokens = 1;
    for (const std::int64_t number : in_slot_)
      if (number >= 0 && at(number).position < at(number).plan.length) {
        call.rows.push_back(row_of(number));
        ++at(number).position;
      }
    if (call.rows.empty()) return;
    if (!calm_) {
      random_.shuffle(call.rows);
      for (std::int64_t more = padding(step); more > 0; --more)
        call.rows.insert(call.rows.begin() + static_cast<std::int64_t>(random_.below(call.rows.size() + 1)),
                         ChurnRow());
    }
    script_.actions.push_back(std::move(call));
  }

  std::int64_t padding(std::int64_t step) {
    if (config_.script.empty()) return chance(config_.pad) ? 1 + static_cast<std::int64_t>(random_.below(3)) : 0;
    std::int64_t rows = 0;
    for (const ChurnEvent& event : config_.script)
      if (event.step == step && event.what == ChurnEvent::What::pad) rows += event.value;
    return rows;
  }

  void dismiss_done() {
    for (const std::int64_t number : std::vector<std::int64_t>(in_slot_)) {
      if (number < 0 || at(number).position < at(number).plan.length) continue;
      leave(number);
      if (at(number).saved == 0) continue;
      free_places_.push_back(at(number).place);
      at(number).saved = 0;
    }
  }

  const WorkloadConfig& workload_;
  const ChurnConfig& config_;
  bool calm_;
  datasets::recall::Random random_;
  std::vector<Sequence> sequences_;
  std::vector<std::int64_t> in_slot_;  // the sequence; below 0: free
  std::deque<std::int64_t> waiting_;
  std::vector<std::int64_t> free_places_;
  std::int64_t steps_ = 0;
  ChurnScript script_;
};

}  // namespace

std::string_view churn_kind_name(ChurnKind kind) {
  switch (kind) {
    case ChurnKind::admission:
      return "admission";
    case ChurnKind::one_token_chunk:
      return "one_token_chunk";
    case ChurnKind::recomputation:
      return "recomputation";
    case ChurnKind::restore:
      return "restore";
    case ChurnKind::padded_rows:
      return "padded_rows";
    case ChurnKind::reordered_rows:
      return "reordered_rows";
    case ChurnKind::batch_size:
      break;
  }
  return "batch_size";
}

ChurnSequence churn_sequence(const WorkloadConfig& workload, std::int64_t number) {
  const ChurnConfig& config = *workload.churn;
  datasets::recall::Random random(config.seed);
  random.mix(static_cast<std::uint64_t>(number));
  const auto draw = [&](std::int64_t low, std::int64_t high) {  // both may come
    return low + static_cast<std::int64_t>(random.below(static_cast<std::size_t>(high - low + 1)));
  };
  ChurnSequence sequence;
  sequence.prompt = draw(1, config.prompt_tokens);
  if (number % 3 == 0) sequence.prompt = workload.block * draw(1, (config.prompt_tokens - 1) / workload.block) + 1;
  sequence.length = draw((sequence.prompt + config.length + 1) / 2, config.length);
  return sequence;
}

std::int64_t churn_sequences(const ChurnConfig& config, std::int64_t slots) {
  return config.sequences.value_or(slots + std::max<std::int64_t>(2, slots / 4));
}

ChurnScript make_churn_script(const WorkloadConfig& workload, std::int64_t slots) {
  return Server(workload, slots, churn_sequences(*workload.churn, slots), false).run();
}

ChurnScript make_calm_script(const WorkloadConfig& workload, std::int64_t slots, std::int64_t sequences) {
  return Server(workload, slots, sequences, true).run();
}

}  // namespace replayeval
