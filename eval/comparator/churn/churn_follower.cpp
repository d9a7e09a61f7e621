#include "eval/comparator/churn/churn_follower.h"

#include "eval/comparator/interrupt.h"

namespace replayeval {

// What each of the call's tokens is an example of.
void ChurnFollower::note(const ChurnAction& call) {
  bool padded = false, reordered = false;
  std::int32_t last = -1;
  for (const ChurnRow& row : call.rows) {
    padded = padded || row.slot < 0;
    if (row.slot < 0) continue;
    reordered = reordered || row.slot < last;
    last = row.slot;
  }
  for (const ChurnRow& row : call.rows) {
    if (row.slot < 0) continue;
    Stay& stay = stays_[static_cast<std::size_t>(row.slot)];
    if (stay.stories.empty()) stay.begin = row.begin;
    stay.stories.insert(stay.stories.end(), static_cast<std::size_t>(call.tokens), {row.came, padded, reordered});
    decoded_ += call.tokens;
  }
}

void ChurnFollower::follow(const ChurnScript& script, ChurnTally& tally) {
  using What = ChurnAction::What;
  const std::unique_ptr<DecodeCache> cache = make_cache(script.slots);
  SavedPrefixes saved(make_cache(script.places));
  stays_.assign(static_cast<std::size_t>(script.slots), {});
  begin(script.slots);
  for (const ChurnAction& action : script.actions) {
    stop_if_asked();
    const ChurnRow& row = action.rows.front();
    switch (action.what) {
      case What::prefill:
        prefill(row, action.tokens, *cache);
        break;
      case What::decode:
        note(action);
        decode(action, *cache);
        break;
      case What::save:
        saved.save(action.place, *cache, row.slot);
        break;
      case What::restore:
        saved.restore(row.slot, *cache, action.place, tally);
        break;
      case What::leave: {
        Stay& stay = stays_[static_cast<std::size_t>(row.slot)];
        check(row, stay, action.tokens, *cache, tally);
        stay = {};
        cache->reset_slot(row.slot);
        break;
      }
    }
  }
}

}  // namespace replayeval
