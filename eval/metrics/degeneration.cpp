#include "eval/metrics/degeneration.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <stdexcept>

#include "eval/metrics/bootstrap.h"
#include "eval/metrics/paired_accuracy.h"

namespace replayeval::metrics {
namespace {

struct Quantity {
  const char* name;
  double (*of)(const Degeneration&);
};
struct Flag {
  const char* name;
  bool (*of)(const Degeneration&);
};

double repeated_share(const Degeneration& d) {
  return d.length == 0
             ? 0.0
             : static_cast<double>(d.repeated.length * d.repeated.occurrences) / static_cast<double>(d.length);
}

constexpr std::array<Quantity, 5> quantities{{
    {"length", [](const Degeneration& d) { return static_cast<double>(d.length); }},
    {"repeated_span", [](const Degeneration& d) { return static_cast<double>(d.repeated.length); }},
    {"repeated_span_share", repeated_share},
    {"repeated_3grams", [](const Degeneration& d) { return d.repeated_3grams; }},
    {"compression_ratio", [](const Degeneration& d) { return d.compression_ratio; }},
}};
constexpr std::array<Flag, 3> flags{{
    {"truncated", [](const Degeneration& d) { return d.truncated; }},
    {"looped", [](const Degeneration& d) { return d.loop.has_value(); }},
    {"looped_to_end", [](const Degeneration& d) { return d.loop_to_end; }},
}};

void check(std::size_t sequences, std::size_t expected, const char* what) {
  if (sequences != expected)
    throw std::invalid_argument(std::string(what) + " has " + std::to_string(sequences) + " entries, expected " +
                                std::to_string(expected));
  if (expected == 0) throw std::invalid_argument("no generated sequences, expected at least 1");
}

// Sequences in an order in which those of one item are neighbours, which clustered_mean asks for.
std::vector<std::size_t> by_item(std::span<const std::int64_t> item) {
  std::vector<std::size_t> order(item.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return item[a] < item[b]; });
  return order;
}

// A quantity of every sequence, and the options that keep items whole.
struct OverItems {
  std::vector<double> values;
  std::vector<std::int64_t> items;
  IntervalOptions options;
};

template <typename Value>
OverItems over_items(std::span<const std::int64_t> item, const IntervalOptions& options, Value value) {
  OverItems over{{}, {}, options};
  for (const std::size_t i : by_item(item)) {
    over.values.push_back(value(i));
    over.items.push_back(item[i]);
  }
  over.options.min_documents = 1;
  over.options.unit = "items";
  return over;
}

std::vector<std::uint8_t> set_flags(std::span<const Degeneration> sequences, const Flag& flag) {
  std::vector<std::uint8_t> result;
  for (const Degeneration& sequence : sequences) result.push_back(flag.of(sequence) ? 1 : 0);
  return result;
}

std::string_view bytes_of(std::span<const std::int32_t> tokens, std::string& bytes) {
  for (const std::int32_t token : tokens)
    for (unsigned shift = 0; shift < 32; shift += 8)
      bytes.push_back(static_cast<char>((static_cast<std::uint32_t>(token) >> shift) & 0xffU));
  return bytes;
}

}  // namespace

Degeneration degeneration(std::span<const std::int32_t> tokens, std::optional<std::string_view> text, bool truncated,
                          const LoopRule& rule) {
  Degeneration result;
  result.length = static_cast<std::int64_t>(tokens.size());
  result.truncated = truncated;
  result.repeated = longest_repeated_span(tokens);
  result.loop = longest_loop(tokens, rule.min_repeats);
  if (result.loop && result.loop->length < rule.min_tokens) result.loop.reset();
  result.loop_to_end = result.loop && result.loop->end() == result.length;
  result.repeated_3grams = repeated_3grams(tokens);
  std::string bytes;
  result.compression_ratio = compression_ratio(text ? *text : bytes_of(tokens, bytes));
  return result;
}

std::vector<NamedEstimate> degeneration_means(std::span<const Degeneration> sequences,
                                              std::span<const std::int64_t> item, const IntervalOptions& options) {
  check(item.size(), sequences.size(), "item");
  std::vector<NamedEstimate> means;
  for (const Quantity& quantity : quantities) {
    const OverItems over = over_items(item, options, [&](std::size_t i) { return quantity.of(sequences[i]); });
    Estimate mean = studentised_mean(over.values, over.items, over.options);
    mean.p_value.reset();  // of the mean being 0: nobody's question
    means.push_back({quantity.name, std::move(mean)});
  }
  for (const Flag& flag : flags)
    means.push_back({flag.name, accuracy(set_flags(sequences, flag), item, options.confidence)});
  return means;
}

std::vector<NamedEstimate> degeneration_deltas(std::span<const Degeneration> baseline,
                                               std::span<const Degeneration> arm, std::span<const std::int64_t> item,
                                               const IntervalOptions& options) {
  check(arm.size(), baseline.size(), "arm");
  check(item.size(), baseline.size(), "item");
  std::vector<NamedEstimate> deltas;
  for (const Quantity& quantity : quantities) {
    const OverItems over =
        over_items(item, options, [&](std::size_t i) { return quantity.of(arm[i]) - quantity.of(baseline[i]); });
    Estimate delta = clustered_t(over.values, over.items, over.options);
    delta.method = "paired " + delta.method;
    deltas.push_back({quantity.name, std::move(delta)});
  }
  for (const Flag& flag : flags)
    deltas.push_back(
        {flag.name, paired_accuracy(set_flags(baseline, flag), set_flags(arm, flag), item, options.confidence).delta});
  return deltas;
}

}  // namespace replayeval::metrics
