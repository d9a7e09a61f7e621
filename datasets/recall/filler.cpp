#include "datasets/recall/filler.h"

#include <algorithm>
#include <utility>

#include "datasets/recall/words.h"

namespace replayeval::datasets::recall {
namespace {

constexpr int sentences_in_stock = 48;  // from which sums are made

std::int64_t characters(std::string_view text) {
  return std::count_if(text.begin(), text.end(),
                       [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; });
}

bool is_sentence(std::string_view line) {
  const std::int64_t length = characters(line);
  return length >= 40 && length <= 300 && std::string_view(".!?").find(line.back()) != std::string_view::npos &&
         line.find("  ") == std::string_view::npos;
}

}  // namespace

std::vector<std::string> sentence_lines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (const std::string_view line = text.substr(0, end); is_sentence(line)) lines.emplace_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::int64_t few_sentences(Random random, const Count& count) {
  return 3 * count({Part::filler, generated_sentence(random), -1});
}

Filler::Filler(std::span<const std::string> lines, Count count, Segment single, std::vector<std::string> forbidden)
    : lines_(lines), count_(std::move(count)), single_(std::move(single)), forbidden_(std::move(forbidden)) {}

bool Filler::allowed(const std::string& text) const {
  return std::none_of(forbidden_.begin(), forbidden_.end(),
                      [&](const std::string& part) { return text.find(part) != std::string::npos; });
}

Segment Filler::draw(Random& random, bool generated_only) const {
  if (!generated_only && !lines_.empty() && random.unit() < 0.8) return {Part::filler, random.choice(lines_), -1};
  return {Part::filler, generated_sentence(random), -1};
}

Segments Filler::gather(Random& random, std::int64_t& room) const {
  Segments filler;
  for (int misses = 0; misses < 40;) {
    Segment segment = draw(random, misses >= 20);  // generated sentences are short: they take the last of the room
    const std::int64_t size = count_(segment);
    if (size <= room && allowed(segment.text)) {
      room -= size;
      misses = 0;
      filler.push_back(std::move(segment));
    } else {
      ++misses;
    }
  }
  return filler;
}

// Change for `room` in coins of sentences: reached[s] is a sentence with which a sum of s tokens ends, or -1. Of
// sentences of one size, those not yet used go first.
Segments Filler::sentences_that_sum(Random& random, std::int64_t room) const {
  Segments stock;
  std::vector<std::int64_t> sizes;
  for (int i = 0; i < sentences_in_stock; ++i) {
    Segment sentence = draw(random, true);
    if (!allowed(sentence.text)) continue;
    sizes.push_back(count_(sentence));
    stock.push_back(std::move(sentence));
  }
  std::vector<int> reached(static_cast<std::size_t>(room) + 1, -1);
  for (std::int64_t s = 1; s <= room; ++s) {
    for (std::size_t tried = 0, i = random.below(std::max<std::size_t>(1, stock.size())); tried < stock.size();
         ++tried, i = (i + 1) % stock.size()) {
      const std::int64_t before = s - sizes[i];
      if (before != 0 && (before < 0 || reached[static_cast<std::size_t>(before)] < 0)) continue;
      reached[static_cast<std::size_t>(s)] = static_cast<int>(i);
      break;
    }
  }
  std::int64_t sum = room;
  while (sum > 0 && reached[static_cast<std::size_t>(sum)] < 0) --sum;
  Segments chosen(static_cast<std::size_t>(room - sum), single_);
  std::vector<bool> used(stock.size(), false);
  while (sum > 0) {
    auto i = static_cast<std::size_t>(reached[static_cast<std::size_t>(sum)]);
    for (std::size_t other = 0; other < stock.size() && used[i]; ++other)
      if (!used[other] && sizes[other] == sizes[i]) i = other;
    used[i] = true;
    chosen.push_back(stock[i]);
    sum -= sizes[i];
  }
  return chosen;
}

Segments Filler::exactly(Random& random, std::int64_t room) const {
  Segments filler;
  std::int64_t left = room;
  if (room > 0) filler = gather(random, left);
  settle(random, filler, left);
  return filler;
}

void Filler::settle(Random& random, Segments& filler, std::int64_t room) const {
  if (room == 0) return;
  const std::int64_t enough = few_sentences(random, count_);
  while (room < enough && !filler.empty()) {
    room += count_(filler.back());
    filler.pop_back();
  }
  append(filler, sentences_that_sum(random, room));
}

}  // namespace replayeval::datasets::recall
