#include "eval/metrics/degeneration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>

#include "eval/metrics/agreement.h"
#include "eval/metrics/suffix_array.h"
#include "tests/temporary_folder.h"

namespace replayeval::metrics {
namespace {

using testing::HasSubstr;
using Tokens = std::vector<std::int32_t>;
using Items = std::vector<std::int64_t>;

Tokens letters(std::string_view text) { return {text.begin(), text.end()}; }

Tokens random_tokens(std::mt19937_64& random, std::int64_t length, std::uint64_t alphabet) {
  Tokens tokens(static_cast<std::size_t>(length));
  for (std::int32_t& token : tokens) token = static_cast<std::int32_t>(random() % alphabet) - 1;
  return tokens;
}

Tokens cycle(std::int64_t length, std::int32_t period) {
  Tokens tokens;
  for (std::int64_t i = 0; i < length; ++i) tokens.push_back(static_cast<std::int32_t>(i % period));
  return tokens;
}

// --- by definition, slowly ------------------------------------------------------------------------------------------

std::vector<std::int32_t> sorted_suffixes(const Tokens& tokens) {
  std::vector<std::int32_t> order(tokens.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](auto a, auto b) {
    return std::lexicographical_compare(tokens.begin() + a, tokens.end(), tokens.begin() + b, tokens.end());
  });
  return order;
}

std::int64_t side_by_side(const Tokens& tokens, std::int64_t begin, std::int64_t length) {
  std::int64_t count = 0;
  for (auto from = tokens.begin();;) {
    from = std::search(from, tokens.end(), tokens.begin() + begin, tokens.begin() + begin + length);
    if (from == tokens.end()) return count;
    ++count;
    from += length;
  }
}

RepeatedSpan slow_repeated_span(const Tokens& tokens) {
  const auto n = static_cast<std::int64_t>(tokens.size());
  for (std::int64_t length = n / 2; length > 0; --length) {
    RepeatedSpan best;
    for (std::int64_t begin = 0; begin + length <= n; ++begin) {
      const std::int64_t count = side_by_side(tokens, begin, length);
      if (count >= 2 && count > best.occurrences) best = {length, begin, count};
    }
    if (best.occurrences > 0) return best;
  }
  return {};
}

std::optional<Loop> slow_loop(const Tokens& tokens, std::int64_t min_repeats) {
  const auto n = static_cast<std::int64_t>(tokens.size());
  std::optional<Loop> best;
  for (std::int64_t period = 1; period <= n / min_repeats; ++period) {
    for (std::int64_t begin = 0; begin < n; ++begin) {
      std::int64_t end = begin + period;
      while (end < n && tokens[static_cast<std::size_t>(end)] == tokens[static_cast<std::size_t>(end - period)]) ++end;
      const Loop loop{begin, std::min(end, n) - begin, period};
      if (loop.repeats() >= min_repeats && (!best || loop.length > best->length)) best = loop;
    }
  }
  return best;
}

std::int64_t slow_edit_distance(const Tokens& a, const Tokens& b) {
  std::vector<std::int64_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::int64_t diagonal = row[0];
    row[0] = static_cast<std::int64_t>(i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::int64_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

// --- repetition -----------------------------------------------------------------------------------------------------

TEST(SuffixArray, IsWhatSortingSuffixesGives) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 200; ++round) {
    const Tokens tokens = random_tokens(random, 1 + round % 60, 1 + random() % 4);
    const SuffixArray suffixes = suffix_array(tokens);
    ASSERT_EQ(suffixes.order, sorted_suffixes(tokens));
    for (std::size_t i = 1; i < tokens.size(); ++i) {
      const auto a = tokens.begin() + suffixes.order[i], b = tokens.begin() + suffixes.order[i - 1];
      std::int32_t shared = 0;
      while (a + shared != tokens.end() && b + shared != tokens.end() && a[shared] == b[shared]) ++shared;
      ASSERT_EQ(suffixes.common[i], shared);
    }
  }
  EXPECT_TRUE(suffix_array(Tokens{}).order.empty());
}

TEST(RepeatedSpan, OfKnownTexts) {
  const RepeatedSpan banana = longest_repeated_span(letters("banana"));
  EXPECT_EQ(banana.length, 2);  // "ana" overlaps itself, "an" and "na" do not
  EXPECT_EQ(banana.occurrences, 2);
  EXPECT_EQ(banana.begin, 1);
  EXPECT_EQ(longest_repeated_span(letters("abcdef")).occurrences, 0);
  EXPECT_EQ(longest_repeated_span({}).length, 0);
  const RepeatedSpan refrain = longest_repeated_span(letters("one refrain two refrain three refrain"));
  EXPECT_EQ(refrain.length, 10);  // " refrain t" of one and two
  EXPECT_EQ(refrain.begin, 3);
}

TEST(RepeatedSpan, IsWhatTryingAllSpansGives) {
  std::mt19937_64 random(2);
  for (int round = 0; round < 300; ++round) {
    const Tokens tokens = random_tokens(random, round % 40, 1 + random() % 4);
    const RepeatedSpan fast = longest_repeated_span(tokens), slow = slow_repeated_span(tokens);
    ASSERT_EQ(fast.length, slow.length);
    ASSERT_EQ(fast.occurrences, slow.occurrences);
    ASSERT_EQ(fast.begin, slow.begin);
  }
}

TEST(Loop, OfKnownTexts) {
  const auto loop = longest_loop(letters("the start. again again again again and out"), 4);
  ASSERT_TRUE(loop);
  EXPECT_EQ(loop->period, 6);
  EXPECT_EQ(loop->repeats(), 4);
  EXPECT_EQ(loop->begin, 10);   // the space before the first "again"
  EXPECT_EQ(loop->length, 26);  // and the space and "a" after the last
  EXPECT_FALSE(longest_loop(letters("the start. again again again again and out"), 5));
  EXPECT_FALSE(longest_loop({}, 2));
  EXPECT_EQ(longest_loop(cycle(1000, 7), 4)->period, 7);
  EXPECT_EQ(longest_loop(cycle(1000, 7), 4)->length, 1000);
}

TEST(Loop, IsWhatTryingAllPeriodsGives) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 400; ++round) {
    Tokens tokens = random_tokens(random, round % 50, 2 + random() % 2);
    const Tokens looped = cycle(static_cast<std::int64_t>(random() % 20), 1 + static_cast<std::int32_t>(random() % 4));
    tokens.insert(tokens.begin() + static_cast<std::ptrdiff_t>(random() % (tokens.size() + 1)), looped.begin(),
                  looped.end());
    for (const std::int64_t repeats : {2, 3}) {
      const std::optional<Loop> fast = longest_loop(tokens, repeats), slow = slow_loop(tokens, repeats);
      ASSERT_EQ(fast.has_value(), slow.has_value());
      if (!fast) continue;
      ASSERT_EQ(fast->length, slow->length);
      ASSERT_EQ(fast->period, slow->period);
      ASSERT_EQ(fast->begin, slow->begin);
    }
  }
}

TEST(Repeated3grams, CountsThoseSeenBefore) {
  EXPECT_EQ(repeated_3grams(letters("abcd")), 0.0);
  EXPECT_DOUBLE_EQ(repeated_3grams(letters("abcabc")), 0.25);  // abc bca cab abc
  EXPECT_DOUBLE_EQ(repeated_3grams(letters("aaaaaa")), 0.75);
  EXPECT_EQ(repeated_3grams(letters("aa")), 0.0);
}

TEST(CompressionRatio, TellsLoopsFromProse) {
  std::string loop;
  for (int i = 0; i < 100; ++i) loop += "and then we check again. ";
  EXPECT_GT(compression_ratio(loop), 25.0);
  std::mt19937_64 random(4);
  std::string noise;
  for (int i = 0; i < 2500; ++i) noise.push_back(static_cast<char>(random()));
  EXPECT_LT(compression_ratio(noise), 1.01);
  EXPECT_EQ(compression_ratio(""), 1.0);
}

TEST(Degeneration, OfALoopThatRunsToTheEnd) {
  std::mt19937_64 random(5);
  Tokens tokens = random_tokens(random, 200, 1000000);
  const Tokens tail = cycle(120, 11);
  tokens.insert(tokens.end(), tail.begin(), tail.end());
  const Degeneration found = degeneration(tokens, std::nullopt, true);
  EXPECT_EQ(found.length, 320);
  EXPECT_TRUE(found.truncated);
  ASSERT_TRUE(found.loop);
  EXPECT_EQ(found.loop->period, 11);
  EXPECT_EQ(found.loop->begin, 200);
  EXPECT_TRUE(found.loop_to_end);
  EXPECT_EQ(found.repeated.length, 55);  // five periods, twice
  EXPECT_NEAR(found.repeated_3grams, (118.0 - 11.0) / 318.0, 1e-12);
  tokens.push_back(-7);
  EXPECT_FALSE(degeneration(tokens, std::nullopt, true).loop_to_end);
}

TEST(Degeneration, TheRuleDecidesWhatALoopIs) {
  const Tokens tokens = cycle(39, 3);
  EXPECT_FALSE(degeneration(tokens, std::nullopt, false).loop) << "39 tokens are below the 40 of the rule";
  EXPECT_TRUE(degeneration(tokens, std::nullopt, false, {.min_repeats = 4, .min_tokens = 39}).loop);
  EXPECT_FALSE(degeneration(cycle(60, 20), std::nullopt, false).loop) << "three repeats are below the 4 of the rule";
}

TEST(Degeneration, TextDecidesTheCompressionRatio) {
  const Tokens tokens = cycle(100, 100);
  const std::string text(400, 'a');
  EXPECT_GT(degeneration(tokens, text, false).compression_ratio, 25.0);
  EXPECT_LT(degeneration(tokens, std::nullopt, false).compression_ratio, 3.0);
}

// A hundred thousand tokens, in the shapes that slow methods fear: all alike, one long period, and no repetition.
TEST(Degeneration, OfLongSequencesIsFast) {
  std::mt19937_64 random(6);
  for (const Tokens& tokens : {Tokens(100000, 5), cycle(100000, 30000), random_tokens(random, 100000, 50000)}) {
    const Degeneration found = degeneration(tokens, std::nullopt, false, {.min_repeats = 3, .min_tokens = 40});
    EXPECT_EQ(found.length, 100000);
  }
  EXPECT_EQ(longest_repeated_span(Tokens(100000, 5)).length, 50000);
  EXPECT_EQ(longest_loop(cycle(100000, 30000), 3)->length, 100000);
}

// --- agreement ------------------------------------------------------------------------------------------------------

TEST(Agreement, OfKnownSequences) {
  EXPECT_EQ(edit_distance(letters("kitten"), letters("sitting")), 3);
  EXPECT_EQ(edit_distance(letters(""), letters("abc")), 3);
  const Agreement same = agreement(letters("abc"), letters("abc"));
  EXPECT_TRUE(same.identical());
  EXPECT_EQ(same.edit_distance, 0);
  EXPECT_EQ(same.edit_share(), 0.0);
  const Agreement shorter = agreement(letters("abc"), letters("abcde"));
  EXPECT_EQ(shorter.first_divergence, 3);
  EXPECT_EQ(shorter.edit_distance, 2);
  EXPECT_DOUBLE_EQ(shorter.edit_share(), 0.4);
  EXPECT_EQ(agreement(letters("abXd"), letters("abYd")).first_divergence, 2);
  EXPECT_TRUE(agreement({}, {}).identical());
}

TEST(EditDistance, IsWhatTheTableGives) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 300; ++round) {
    const Tokens a = random_tokens(random, static_cast<std::int64_t>(random() % 300), 1 + random() % 6);
    Tokens b = random_tokens(random, static_cast<std::int64_t>(random() % 300), 1 + random() % 6);
    if (round % 2 == 0) {  // a relative of `a`
      b = a;
      for (int edits = 0; edits < 20 && !b.empty(); ++edits) {
        const auto place = b.begin() + static_cast<std::ptrdiff_t>(random() % b.size());
        if (random() % 2 == 0)
          b.erase(place);
        else
          b.insert(place, static_cast<std::int32_t>(random() % 9));
      }
    }
    ASSERT_EQ(edit_distance(a, b), slow_edit_distance(a, b)) << a.size() << " " << b.size();
  }
}

TEST(EditDistance, OfLongSequences) {
  std::mt19937_64 random(8);
  Tokens a = random_tokens(random, 20000, 1000), b = a;
  b.erase(b.begin() + 100, b.begin() + 130);
  b[15000] = -5;
  EXPECT_EQ(edit_distance(a, b), 31);
}

// --- aggregates -----------------------------------------------------------------------------------------------------

const Estimate& named(const std::vector<NamedEstimate>& estimates, std::string_view name) {
  for (const NamedEstimate& estimate : estimates)
    if (estimate.metric == name) return estimate.estimate;
  throw std::runtime_error("no metric " + std::string(name));
}

struct Arms {
  std::vector<Degeneration> baseline, arm;
  Items item;
};

Arms generated(int items, int repeats) {
  std::mt19937_64 random(9);
  Arms arms;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    for (int i = 0; i < items; ++i) {
      Tokens tokens = random_tokens(random, 100 + 10 * (i % 7), 5000);
      arms.baseline.push_back(degeneration(tokens, std::nullopt, false));
      if (i % 4 == 0) {
        const Tokens tail = cycle(80, 5);
        tokens.insert(tokens.end(), tail.begin(), tail.end());
      }
      arms.arm.push_back(degeneration(tokens, std::nullopt, i % 4 == 0));
      arms.item.push_back(i);
    }
  }
  return arms;
}

TEST(DegenerationDeltas, SeeWhatTheArmAdds) {
  const Arms arms = generated(40, 3);
  const auto deltas = degeneration_deltas(arms.baseline, arms.arm, arms.item, {});
  EXPECT_NEAR(named(deltas, "length").value, 20.0, 1e-12);
  EXPECT_GT(named(deltas, "length").interval->low, 5.0);
  EXPECT_EQ(named(deltas, "length").units, 40);
  EXPECT_EQ(named(deltas, "length").method, "paired t over 40 items");
  EXPECT_NEAR(named(deltas, "looped").value, 0.25, 1e-12);
  EXPECT_GT(named(deltas, "looped").interval->low, 0.05);
  EXPECT_LT(*named(deltas, "truncated").p_value, 0.01);
  EXPECT_GT(named(deltas, "repeated_3grams").value, 0.05);
  EXPECT_GT(named(deltas, "compression_ratio").value, 0.0);
  const auto means = degeneration_means(arms.arm, arms.item, {});
  EXPECT_NEAR(named(means, "looped_to_end").value, 0.25, 1e-12);
  EXPECT_FALSE(named(means, "length").p_value);
  EXPECT_EQ(means.size(), deltas.size());
}

TEST(DegenerationDeltas, OfEqualArmsAreZero) {
  const Arms arms = generated(30, 2);
  for (const auto& [metric, delta] : degeneration_deltas(arms.arm, arms.arm, arms.item, {})) {
    EXPECT_EQ(delta.value, 0.0) << metric;
    EXPECT_EQ(delta.p_value, 1.0) << metric;
  }
}

TEST(DegenerationDeltas, RefuseBadInput) {
  const Arms arms = generated(4, 1);
  EXPECT_THAT(message_of([&] { degeneration_deltas(arms.baseline, {}, arms.item, {}); }),
              HasSubstr("arm has 0 entries, expected 4"));
  EXPECT_THAT(message_of([&] { degeneration_means(arms.arm, Items{1}, {}); }),
              HasSubstr("item has 1 entries, expected 4"));
  EXPECT_THAT(message_of([] { degeneration_means({}, {}, {}); }), HasSubstr("no generated sequences"));
  EXPECT_THAT(message_of([] { longest_loop({}, 1); }), HasSubstr("min_repeats is 1, expected 2 or more"));
}

}  // namespace
}  // namespace replayeval::metrics
