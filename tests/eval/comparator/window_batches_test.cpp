#include "eval/comparator/window_batches.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "tests/temporary_folder.h"

namespace replayeval {
namespace {

// One token a byte: lengths are in the tests' hands.
class ByteTokenizer final : public datasets::Tokenizer {
 public:
  std::vector<std::int32_t> encode(std::string_view text) const override { return {text.begin(), text.end()}; }
  std::vector<std::int32_t> add_special_tokens(std::vector<std::int32_t> ids) const override { return ids; }
  std::string decode(std::span<const std::int32_t> ids, datasets::SpecialTokens) const override {
    return {ids.begin(), ids.end()};
  }
  std::string piece(std::int32_t id) const override { return {static_cast<char>(id)}; }
  std::int64_t vocab_size() const override { return 128; }
  std::optional<std::int32_t> bos_id() const override { return std::nullopt; }
  std::optional<std::int32_t> eos_id() const override { return std::nullopt; }
  const std::string& kind() const override { return kind_; }
  const std::filesystem::path& file() const override { return file_; }
  const std::string& sha256() const override { return kind_; }

 private:
  std::string kind_ = "bytes";
  std::filesystem::path file_;
};

datasets::WindowReader reader_of(const TemporaryFolder& folder, const std::vector<std::size_t>& lengths,
                                 std::int64_t context) {
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    std::ofstream(folder.path() / fmt::format("d{}.txt", i)) << std::string(lengths[i], 'a');
  }
  datasets::TextSourceSpec spec;
  spec.name = "text";
  spec.path = "*.txt";
  datasets::WindowOptions options;
  options.context = context;
  return {{datasets::TextSource::open(spec, folder.path())}, std::make_shared<ByteTokenizer>(), options};
}

// Every window comes once, no batch mixes lengths, and full batches are full.
TEST(WindowBatches, EqualLengthsAndNothingLost) {
  const TemporaryFolder folder;
  datasets::WindowReader reader = reader_of(folder, {35, 8, 3, 41, 80, 9}, 8);
  const std::int64_t expected = reader.count().scored;
  WindowBatches batches(reader, 8, 4);
  std::int64_t scored = 0;
  std::map<std::pair<std::int64_t, std::int64_t>, int> seen;
  std::vector<std::size_t> full_sizes;
  while (const auto batch = batches.next()) {
    ASSERT_FALSE(batch->empty());
    ASSERT_LE(batch->size(), 4U);
    for (const datasets::Window& window : *batch) {
      EXPECT_EQ(window.input_count(), batch->front().input_count());
      scored += window.scored_count();
      ++seen[{window.document, window.offset}];
    }
    if (batch->front().input_count() == 8) full_sizes.push_back(batch->size());
  }
  EXPECT_EQ(scored, expected);
  EXPECT_EQ(scored, 34 + 7 + 2 + 40 + 79 + 8);
  for (const auto& [place, times] : seen) EXPECT_EQ(times, 1);
  for (std::size_t i = 0; i + 1 < full_sizes.size(); ++i) EXPECT_EQ(full_sizes[i], 4U);
}

TEST(WindowBatches, SameBatchesAgainAfterRewind) {
  const TemporaryFolder folder;
  datasets::WindowReader reader = reader_of(folder, {35, 8, 41}, 8);
  const auto places = [&] {
    reader.rewind();
    WindowBatches batches(reader, 8, 3);
    std::vector<std::int64_t> all;
    while (const auto batch = batches.next()) {
      all.push_back(-1);
      for (const auto& window : *batch) all.push_back(window.document * 1000 + window.offset);
    }
    return all;
  };
  const auto first = places();
  EXPECT_EQ(first, places());
  EXPECT_GT(first.size(), 8U);
}

}  // namespace
}  // namespace replayeval
