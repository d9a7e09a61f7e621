#include "datasets/windows.h"

#include <gmock/gmock.h>

#include <numeric>
#include <string>
#include <vector>

#include "tests/temporary_folder.h"

namespace replayeval::datasets {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::int32_t bos = 1000;

std::vector<std::int32_t> numbered(std::int64_t count) {
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(count));
  std::iota(tokens.begin(), tokens.end(), 0);
  return tokens;
}

// Every prediction of the document counts once, and sees what the header promises. `sequence` has the bos.
void expect_partition(const DocumentWindows& windows, const std::vector<std::int32_t>& sequence, std::int64_t context,
                      std::int64_t stride) {
  std::vector<int> counted(sequence.size(), 0);
  for (std::int64_t w = 0; w < windows.count(); ++w) {
    const Window window = windows.window(w);
    ASSERT_GE(window.first_scored, 1);
    ASSERT_LE(window.input_count(), context);
    ASSERT_GT(window.scored_count(), 0) << "a window that scores nothing is a waste";
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(window.tokens.size()); ++i) {
      ASSERT_EQ(window.tokens[static_cast<std::size_t>(i)], sequence.at(static_cast<std::size_t>(window.offset + i)));
    }
    for (auto i = window.first_scored; i < static_cast<std::int64_t>(window.tokens.size()); ++i) {
      ++counted.at(static_cast<std::size_t>(window.offset + i));
      if (w > 0) {
        ASSERT_GE(i, context - stride + 1) << "tokens before a prediction";
      }
    }
  }
  for (std::size_t i = 0; i < counted.size(); ++i) ASSERT_EQ(counted[i], i == 0 ? 0 : 1) << "position " << i;
}

TEST(DocumentWindows, EveryPredictionCountsExactlyOnce) {
  for (std::int64_t context = 1; context <= 9; ++context) {
    for (std::int64_t stride = 1; stride <= context; ++stride) {
      for (std::int64_t size = 2; size <= 40; ++size) {
        for (const bool with_bos : {false, true}) {
          SCOPED_TRACE(testing::Message()
                       << "context " << context << " stride " << stride << " size " << size << " bos " << with_bos);
          WindowOptions options{.context = context, .stride = stride, .bos = {}, .max_tokens = 0};
          std::vector<std::int32_t> sequence = numbered(size);
          if (with_bos) {
            options.bos = bos;
            sequence.insert(sequence.begin(), bos);
          }
          const DocumentWindows windows(numbered(size), options);
          EXPECT_EQ(windows.scored_count(), static_cast<std::int64_t>(sequence.size()) - 1);
          expect_partition(windows, sequence, context, stride);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST(DocumentWindows, ByHand) {
  const DocumentWindows windows(numbered(8), {.context = 4, .stride = 2, .bos = {}, .max_tokens = 0});
  ASSERT_EQ(windows.count(), 3);
  EXPECT_THAT(windows.window(0).tokens, ElementsAre(0, 1, 2, 3, 4));
  EXPECT_EQ(windows.window(0).first_scored, 1);
  EXPECT_THAT(windows.window(1).tokens, ElementsAre(2, 3, 4, 5, 6));
  EXPECT_EQ(windows.window(1).first_scored, 3);
  EXPECT_EQ(windows.window(1).offset, 2);
  EXPECT_THAT(windows.window(2).tokens, ElementsAre(4, 5, 6, 7));
  EXPECT_EQ(windows.window(2).first_scored, 3);
}

TEST(DocumentWindows, BosMakesTheFirstTokenAPrediction) {
  const DocumentWindows windows(numbered(1), {.context = 4, .stride = 0, .bos = bos, .max_tokens = 0});
  ASSERT_EQ(windows.count(), 1);
  EXPECT_THAT(windows.window(0).tokens, ElementsAre(bos, 0));
  EXPECT_EQ(windows.scored_count(), 1);
}

TEST(DocumentWindows, NothingToPredict) {
  const WindowOptions plain{.context = 4, .stride = 0, .bos = {}, .max_tokens = 0};
  const WindowOptions with_bos{.context = 4, .stride = 0, .bos = bos, .max_tokens = 0};
  EXPECT_EQ(DocumentWindows(numbered(0), plain).count(), 0);
  EXPECT_EQ(DocumentWindows(numbered(1), plain).count(), 0);
  EXPECT_EQ(DocumentWindows(numbered(0), with_bos).count(), 0);
  EXPECT_THROW(DocumentWindows(numbered(1), plain).window(0), std::out_of_range);
}

TEST(DocumentWindows, LimitIsMetExactlyAndIsThatOfAShorterDocument) {
  for (std::int64_t limit = 0; limit <= 20; ++limit) {
    const WindowOptions options{.context = 4, .stride = 3, .bos = {}, .max_tokens = 0};
    const DocumentWindows limited(numbered(15), options, limit);
    EXPECT_EQ(limited.scored_count(), std::min<std::int64_t>(limit, 14));
    const DocumentWindows shorter(numbered(std::min<std::int64_t>(limit + 1, 15)), options);
    ASSERT_EQ(limited.count(), shorter.count());
    for (std::int64_t w = 0; w < limited.count(); ++w) EXPECT_EQ(limited.window(w).tokens, shorter.window(w).tokens);
  }
}

// Against the definition, place by place: with a prompt of p tokens, a prediction counts in the window where it counts
// without, if that window holds more than p tokens before it.
TEST(DocumentWindows, APromptLeadsUpToPredictions) {
  for (std::int64_t context = 2; context <= 7; ++context) {
    for (std::int64_t stride = 1; stride <= context; ++stride) {
      for (std::int64_t prompt = 1; prompt < context; ++prompt) {
        for (std::int64_t size = 2; size <= 30; ++size) {
          SCOPED_TRACE(testing::Message() << context << " " << stride << " " << prompt << " " << size);
          WindowOptions options;
          options.context = context;
          options.stride = stride;
          const DocumentWindows all(numbered(size), options);
          options.prompt = prompt;
          const DocumentWindows behind(numbered(size), options);
          std::vector<std::int64_t> expected, found;
          for (std::int64_t w = 0; w < all.count(); ++w) {
            const Window window = all.window(w);
            for (auto i = window.first_scored; i < static_cast<std::int64_t>(window.tokens.size()); ++i)
              if (i > prompt) expected.push_back(window.offset + i);
          }
          for (std::int64_t w = 0; w < behind.count(); ++w) {
            const Window window = behind.window(w);
            ASSERT_GT(window.scored_count(), 0);
            for (auto i = window.first_scored; i < static_cast<std::int64_t>(window.tokens.size()); ++i)
              found.push_back(window.offset + i);
          }
          ASSERT_EQ(found, expected);
          ASSERT_EQ(behind.scored_count(), static_cast<std::int64_t>(expected.size()));
          const std::int64_t limit = static_cast<std::int64_t>(expected.size()) / 2;
          ASSERT_EQ(DocumentWindows(numbered(size), options, limit).scored_count(), limit);
        }
      }
    }
  }
}

TEST(DocumentWindows, RefusesSenselessOptions) {
  const auto fault = [](std::int64_t context, std::int64_t stride) {
    return message_of(
        [&] { DocumentWindows(numbered(5), {.context = context, .stride = stride, .bos = {}, .max_tokens = 0}); });
  };
  EXPECT_THAT(fault(0, 0), HasSubstr("context is 0; expected 1 or more"));
  EXPECT_THAT(fault(4, 5), HasSubstr("stride is 5; expected 1 … 4"));
  EXPECT_THAT(fault(4, -1), HasSubstr("stride is -1"));
  EXPECT_EQ(fault(4, 4), "");
}

// A token a byte.
class Bytes final : public Tokenizer {
 public:
  std::vector<std::int32_t> encode(std::string_view text) const override { return {text.begin(), text.end()}; }
  std::vector<std::int32_t> add_special_tokens(std::vector<std::int32_t> ids) const override { return ids; }
  std::string decode(std::span<const std::int32_t> ids, SpecialTokens) const override {
    return {ids.begin(), ids.end()};
  }
  std::string piece(std::int32_t id) const override { return std::string(1, static_cast<char>(id)); }
  std::int64_t vocab_size() const override { return 128; }
  std::optional<std::int32_t> bos_id() const override { return 1; }
  std::optional<std::int32_t> eos_id() const override { return std::nullopt; }
  const std::string& kind() const override { return name_; }
  const std::filesystem::path& file() const override { return file_; }
  const std::string& sha256() const override { return name_; }

 private:
  std::string name_ = "bytes";
  std::filesystem::path file_ = "bytes";
};

class WindowReaderTest : public testing::Test {
 protected:
  WindowReaderTest() {
    folder_.write("a/1.txt", "abcdefghij");
    folder_.write("a/2.txt", "k");
    folder_.write("a/3.txt", "lmnop");
    folder_.write("b/1.txt", "qrstuvw");
  }
  WindowReader reader(const WindowOptions& options, std::int64_t max_in_a = 0) const {
    std::vector<TextSource> sources;
    for (const nlohmann::json& spec :
         {nlohmann::json{{"path", "a/*.txt"}, {"max_tokens", max_in_a}}, nlohmann::json{{"path", "b/*.txt"}}}) {
      sources.push_back(TextSource::open(parse_text_source(spec, "test"), folder_.path()));
    }
    return {std::move(sources), std::make_shared<Bytes>(), options};
  }
  static std::vector<std::string> scored_texts(WindowReader* reader) {
    std::vector<std::string> texts;
    while (auto window = reader->next())
      texts.emplace_back(window->tokens.begin() + window->first_scored, window->tokens.end());
    return texts;
  }

  TemporaryFolder folder_;
};

TEST_F(WindowReaderTest, DocumentsAreKeptApart) {
  WindowReader all = reader({.context = 4, .stride = 4, .bos = {}, .max_tokens = 0});
  EXPECT_THAT(scored_texts(&all), ElementsAre("bcde", "fghi", "j", "mnop", "rstu", "vw"));
  ASSERT_EQ(all.documents().size(), 4U);
  EXPECT_EQ(all.documents()[1].id, "2");
  EXPECT_EQ(all.documents()[1].tokens, 1);
  EXPECT_EQ(all.documents()[1].scored, 0);
  EXPECT_EQ(all.documents()[3].source, "b");
  EXPECT_EQ(all.documents()[3].scored, 6);
  EXPECT_EQ(all.documents()[0].bytes, 10);
  EXPECT_EQ(all.scored_count(), 9 + 4 + 6);
}

TEST_F(WindowReaderTest, BosBeginsEveryDocumentAndNoOtherWindow) {
  WindowReader all = reader({.context = 4, .stride = 4, .bos = 1, .max_tokens = 0});
  EXPECT_THAT(scored_texts(&all), ElementsAre("abcd", "efgh", "ij", "k", "lmno", "p", "qrst", "uvw"));
  all.rewind();
  while (auto window = all.next()) EXPECT_EQ(window->tokens.front() == 1, window->offset == 0);
}

TEST_F(WindowReaderTest, LimitsOfASourceAndOfAll) {
  WindowReader of_source = reader({.context = 4, .stride = 4, .bos = {}, .max_tokens = 0}, 6);
  EXPECT_THAT(scored_texts(&of_source), ElementsAre("bcde", "fg", "rstu", "vw"));
  WindowReader of_all = reader({.context = 4, .stride = 4, .bos = {}, .max_tokens = 11});
  EXPECT_THAT(scored_texts(&of_all), ElementsAre("bcde", "fghi", "j", "mn"));
  WindowReader both = reader({.context = 4, .stride = 4, .bos = {}, .max_tokens = 8}, 6);
  EXPECT_THAT(scored_texts(&both), ElementsAre("bcde", "fg", "rs"));
}

TEST_F(WindowReaderTest, EverySourceHasALimitOfItsOwn) {
  std::vector<TextSource> sources;
  for (const char* path : {"a/*.txt", "b/*.txt"}) {
    const nlohmann::json spec = {{"path", path}, {"max_tokens", 3}};
    sources.push_back(TextSource::open(parse_text_source(spec, "test"), folder_.path()));
  }
  WindowReader both(std::move(sources), std::make_shared<Bytes>(),
                    {.context = 4, .stride = 4, .bos = {}, .max_tokens = 0});
  EXPECT_THAT(scored_texts(&both), ElementsAre("bcd", "rst"));
}

TEST_F(WindowReaderTest, WindowsNameTheirDocument) {
  WindowReader all = reader({.context = 4, .stride = 4, .bos = {}, .max_tokens = 0});
  std::vector<std::int64_t> documents;
  while (auto window = all.next()) documents.push_back(window->document);
  EXPECT_THAT(documents, ElementsAre(0, 0, 0, 2, 3, 3));
}

TEST_F(WindowReaderTest, CountForetellsAndDisturbsNothing) {
  for (const std::int64_t limit : {0, 7, 11, 100}) {
    WindowReader all = reader({.context = 4, .stride = 2, .bos = {}, .max_tokens = limit}, 8);
    ASSERT_TRUE(all.next());
    const WindowReader::Totals totals = all.count();
    std::int64_t windows = 1;
    while (all.next()) ++windows;
    EXPECT_EQ(totals.windows, windows);
    EXPECT_EQ(totals.scored, all.scored_count());
    EXPECT_EQ(totals.documents, static_cast<std::int64_t>(all.documents().size()));
  }
}

TEST_F(WindowReaderTest, RewindGivesTheSameWindows) {
  WindowReader all = reader({.context = 3, .stride = 2, .bos = 1, .max_tokens = 15});
  const auto first = scored_texts(&all);
  all.rewind();
  EXPECT_EQ(scored_texts(&all), first);
}

TEST_F(WindowReaderTest, DescribesItself) {
  const nlohmann::json description = reader({.context = 4, .stride = 0, .bos = 1, .max_tokens = 9}).describe();
  EXPECT_EQ(description.at("context"), 4);
  EXPECT_EQ(description.at("stride"), 4) << "0 means the context";
  EXPECT_EQ(description.at("bos"), 1);
  EXPECT_EQ(description.at("max_tokens"), 9);
  EXPECT_EQ(description.at("sources").size(), 2U);
  EXPECT_EQ(description.at("sources")[0].at("documents"), 3);
}

TEST_F(WindowReaderTest, RefusesABosOutsideTheVocabulary) {
  EXPECT_THAT(message_of([&] { reader({.context = 4, .stride = 0, .bos = 128, .max_tokens = 0}); }),
              HasSubstr("bos 128 is outside the vocabulary; expected 0 … 127"));
}

}  // namespace
}  // namespace replayeval::datasets
