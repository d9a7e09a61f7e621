#include "datasets/tokenizer.h"

#include <gmock/gmock.h>
#include <sentencepiece_trainer.h>

#include <sstream>
#include <string>

#include "datasets/sha256.h"
#include "tests/temporary_folder.h"

namespace replayeval::datasets {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// A byte-fallback model of a few hundred pieces, trained here, so that the test knows what it holds.
std::string trained_model() {
  std::ostringstream text;
  for (int i = 0; i < 400; ++i) text << "the recurrent state number " << i << " is written when the ring is full\n";
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", text.str()).string();
  std::string model;
  const auto status = sentencepiece::SentencePieceTrainer::Train(
      "--input=" + corpus + " --model_prefix=" + (folder.path() / "m").string() +
          " --model_type=bpe --vocab_size=360 --byte_fallback=true --hard_vocab_limit=false --minloglevel=2 --bos_id=1 "
          "--eos_id=2",
      nullptr, nullptr);
  if (!status.ok()) throw std::runtime_error(status.ToString());
  std::ifstream file(folder.path() / "m.model", std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class TokenizerTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { model_ = new std::string(trained_model()); }
  static void TearDownTestSuite() {
    delete model_;
    model_ = nullptr;
  }
  std::unique_ptr<Tokenizer> load() const {
    folder_.write("tokenizer.model", *model_);
    return load_tokenizer(folder_.path());
  }
  std::string load_fault() const {
    return message_of([&] { load_tokenizer(folder_.path()); });
  }

  static std::string* model_;
  TemporaryFolder folder_;
};

std::string* TokenizerTest::model_ = nullptr;

TEST_F(TokenizerTest, RoundTripIncludingWhatTheVocabularyLacks) {
  const auto tokenizer = load();
  for (const std::string text : {"the ring is full", "naïve façade 状態 🙂", "A B  C"}) {
    const auto ids = tokenizer->encode(text);
    EXPECT_FALSE(ids.empty());
    for (const std::int32_t id : ids) EXPECT_LT(id, tokenizer->vocab_size());
    if (text != "A B  C") {  // sentencepiece's normalisation squeezes spaces
      EXPECT_EQ(tokenizer->decode(ids), text);
    }
  }
}

TEST_F(TokenizerTest, FrequentWordsAreFewTokens) {
  const auto tokenizer = load();
  EXPECT_LT(tokenizer->encode("the ring is full").size(), 10U) << "a byte or character tokenizer would need 16";
}

TEST_F(TokenizerTest, DescribesItself) {
  const auto tokenizer = load();
  EXPECT_EQ(tokenizer->kind(), "sentencepiece");
  EXPECT_EQ(tokenizer->sha256(), sha256_hex(*model_));
  EXPECT_EQ(tokenizer->file(), folder_.path() / "tokenizer.model");
  EXPECT_EQ(tokenizer->bos_id(), 1);
  EXPECT_EQ(tokenizer->eos_id(), 2);
  EXPECT_EQ(tokenizer->piece(1), "<s>");
}

TEST_F(TokenizerTest, AddsNoSpecialTokens) {
  const auto tokenizer = load();
  for (const std::int32_t id : tokenizer->encode("the ring is full")) {
    EXPECT_NE(id, 1);
    EXPECT_NE(id, 2);
  }
}

// What transformers' tokenizers do, and sentencepiece alone does not: it takes "<s>" for three characters.
TEST_F(TokenizerTest, SpelledControlTokensAreTokens) {
  const auto tokenizer = load();
  std::vector<std::int32_t> expected = tokenizer->encode("the ring ");
  expected.push_back(1);
  for (const std::int32_t id : tokenizer->encode(" is")) expected.push_back(id);
  expected.insert(expected.end(), {2, 0});
  EXPECT_EQ(tokenizer->encode("the ring <s> is</s><unk>"), expected);
  EXPECT_THAT(tokenizer->encode("<s><s>"), testing::ElementsAre(1, 1));
  EXPECT_THAT(tokenizer->encode("< s>"), testing::Not(testing::Contains(1)));
}

TEST_F(TokenizerTest, RefusesIdsOutsideTheVocabulary) {
  const auto tokenizer = load();
  const std::int32_t size = static_cast<std::int32_t>(tokenizer->vocab_size());
  const std::vector<std::int32_t> too_large = {5, size};
  const std::vector<std::int32_t> negative = {-1};
  EXPECT_THAT(message_of([&] { tokenizer->decode(too_large); }),
              AllOf(HasSubstr("token id " + std::to_string(size) + " at place 1"),
                    HasSubstr("expected 0 … " + std::to_string(size - 1))));
  EXPECT_THAT(message_of([&] { tokenizer->decode(negative); }), HasSubstr("token id -1 at place 0"));
  EXPECT_THAT(message_of([&] { tokenizer->piece(size); }), HasSubstr("outside the vocabulary"));
}

TEST_F(TokenizerTest, RefusesTextThatIsNotUtf8) {
  EXPECT_THAT(message_of([tokenizer = load()] { tokenizer->encode("a\xff"); }),
              HasSubstr("byte 1: found ff, expected UTF-8"));
}

TEST_F(TokenizerTest, DamagedModel) {
  folder_.write("tokenizer.model", model_->substr(0, model_->size() / 2));
  EXPECT_THAT(load_fault(), HasSubstr("tokenizer.model: not a sentencepiece model"));
  folder_.write("tokenizer.model", "hello");
  EXPECT_THAT(load_fault(), HasSubstr("tokenizer.model: not a sentencepiece model"));
  folder_.write("tokenizer.model", "");
  EXPECT_THAT(load_fault(), HasSubstr("tokenizer.model: not a sentencepiece model"));
}

TEST_F(TokenizerTest, FoldersWithoutAModel) {
  EXPECT_THAT(load_fault(), HasSubstr("holds no tokenizer; expected a tokenizer.json or a tokenizer.model"));
  EXPECT_THAT(message_of([&] { load_tokenizer(folder_.path() / "absent"); }), HasSubstr("absent: no such folder"));
}

TEST_F(TokenizerTest, JsonComesFirstIfItCanBeRead) {
  folder_.write("tokenizer.json", R"({"model": {"type": "Unigram", "vocab": [["a", 0.0]]}})");
  EXPECT_EQ(load()->kind(), "sentencepiece") << "a JSON that is not of a BPE model, and a tokenizer.model beside it";
  folder_.write("tokenizer.json", R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}})");
  EXPECT_EQ(load()->kind(), "bpe");
  folder_.write("tokenizer.json", "{}");
  EXPECT_THAT(message_of([&] { load(); }), HasSubstr("tokenizer.json: 'model' is missing")) << "damage is not hidden";
}

TEST_F(TokenizerTest, SpecialTokens) {
  const auto tokenizer = load();
  EXPECT_THAT(tokenizer->add_special_tokens({7, 8}), testing::ElementsAre(1, 7, 8));
  EXPECT_EQ(tokenizer->decode(std::vector<std::int32_t>{1, 2}, SpecialTokens::keep), "");
}

}  // namespace
}  // namespace replayeval::datasets
