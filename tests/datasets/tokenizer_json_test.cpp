#include "datasets/tokenizer_json.h"

#include <gmock/gmock.h>

#include <future>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "datasets/json_node.h"
#include "datasets/sha256.h"
#include "tests/temporary_folder.h"

namespace replayeval::datasets {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

using Ids = std::vector<std::int32_t>;

json small_tokenizer() {
  return json::parse(R"({
    "version": "1.0",
    "added_tokens": [{"id": 9, "content": "<s>", "special": true, "normalized": false}],
    "normalizer": null, "pre_tokenizer": null, "post_processor": null, "decoder": null,
    "model": {"type": "BPE", "vocab": {"<unk>": 0, "a": 1, "b": 2, "c": 3, "ab": 4, "bc": 5, "abc": 6, "<0xC3>": 7,
                                       "<0xA9>": 8},
              "merges": ["b c", "a b", "a bc"]}
  })");
}

class TokenizerJsonTest : public testing::Test {
 protected:
  std::unique_ptr<Tokenizer> load(const json& document) const {
    folder_.write("tokenizer.json", document.dump());
    return load_tokenizer(folder_.path());
  }
  std::string fault(const json& document) const {
    return message_of([&] { load(document); });
  }
  // Of small_tokenizer() with `value` at the JSON pointer.
  std::string fault_with(const std::string& pointer, const std::string& value) const {
    json document = small_tokenizer();
    document[json::json_pointer(pointer)] = json::parse(value);
    return fault(document);
  }
  std::unique_ptr<Tokenizer> load_with(const std::string& pointer, const std::string& value) const {
    json document = small_tokenizer();
    document[json::json_pointer(pointer)] = json::parse(value);
    return load(document);
  }

  TemporaryFolder folder_;
};

TEST_F(TokenizerJsonTest, MergesByRankThenFromTheLeft) {
  const auto tokenizer = load(small_tokenizer());
  EXPECT_THAT(tokenizer->encode("abc"), ElementsAre(6)) << "b c first, then a bc";
  EXPECT_THAT(tokenizer->encode("abab"), ElementsAre(4, 4));
  EXPECT_THAT(tokenizer->encode("abbc"), ElementsAre(4, 5));
  EXPECT_THAT(tokenizer->encode(""), ElementsAre());
}

TEST_F(TokenizerJsonTest, MergesAsPairs) {
  EXPECT_THAT(load_with("/model/merges", R"([["b", "c"], ["a", "bc"]])")->encode("ababc"), ElementsAre(1, 2, 6));
}

TEST_F(TokenizerJsonTest, ALaterMergeOfTheSamePairCounts) {
  EXPECT_THAT(load_with("/model/merges", R"(["a b", "b c", "a b"])")->encode("abc"), ElementsAre(1, 5));
}

TEST_F(TokenizerJsonTest, IgnoreMergesTakesWholeWords) {
  json document = small_tokenizer();
  document["model"]["merges"] = json::array();
  EXPECT_THAT(load(document)->encode("abc"), ElementsAre(1, 2, 3));
  document["model"]["ignore_merges"] = true;
  EXPECT_THAT(load(document)->encode("abc"), ElementsAre(6));
  EXPECT_THAT(load(document)->encode("abca"), ElementsAre(1, 2, 3, 1));
}

TEST_F(TokenizerJsonTest, CharactersOutsideTheVocabulary) {
  json document = small_tokenizer();
  EXPECT_THAT(load(document)->encode("axxb"), ElementsAre(4))
      << "without unk_token they vanish, before anything merges";
  document["model"]["unk_token"] = "<unk>";
  EXPECT_THAT(load(document)->encode("axxb"), ElementsAre(1, 0, 0, 2));
  document["model"]["fuse_unk"] = true;
  EXPECT_THAT(load(document)->encode("axxb"), ElementsAre(1, 0, 2));
  EXPECT_THAT(load(document)->encode("aé"), ElementsAre(1, 0));
  document["model"]["byte_fallback"] = true;
  EXPECT_THAT(load(document)->encode("aé"), ElementsAre(1, 7, 8));
  EXPECT_THAT(load(document)->encode("aø"), ElementsAre(1, 0)) << "its second byte is not there";
  document["model"]["unk_token"] = "<none>";
  const auto tokenizer = load(document);
  EXPECT_THAT(message_of([&] { tokenizer->encode("x"); }), HasSubstr("unk_token '<none>' is not either"));
}

TEST_F(TokenizerJsonTest, AddedTokens) {
  const auto tokenizer = load(small_tokenizer());
  EXPECT_THAT(tokenizer->encode("ab<s>c"), ElementsAre(4, 9, 3));
  EXPECT_EQ(tokenizer->vocab_size(), 10);
  EXPECT_EQ(tokenizer->piece(9), "<s>");
  EXPECT_EQ(tokenizer->decode(Ids{9, 1}), "<s> a") << "without a decoder, pieces with spaces between";
  EXPECT_EQ(tokenizer->decode(Ids{9, 1}, SpecialTokens::skip), "a");
}

TEST_F(TokenizerJsonTest, TextThatIsNotUtf8) {
  const auto tokenizer = load(small_tokenizer());
  EXPECT_THAT(message_of([&] { tokenizer->encode("ab\xC3"); }), HasSubstr("byte 2: found c3, expected UTF-8"));
  EXPECT_THAT(message_of([&] { tokenizer->encode("\xED\xA0\x80"); }), HasSubstr("byte 0: found ed a0 80"));
}

TEST_F(TokenizerJsonTest, BytesThatFormNoCharacter) {
  json document = small_tokenizer();
  document["decoder"] = json::parse(R"({"type": "ByteFallback"})");
  EXPECT_EQ(load(document)->decode(Ids{7, 8}), "é");
  EXPECT_EQ(load(document)->decode(Ids{7, 7, 8}), "���") << "a run that is not UTF-8: one for each byte";
  document["model"]["vocab"] = {{"Ã", 0}, {"Ã©", 1}, {"ð", 2}};
  document["model"]["merges"] = json::array();
  document["added_tokens"] = json::array();
  document["decoder"] = json::parse(R"({"type": "ByteLevel"})");
  EXPECT_EQ(load(document)->decode(Ids{0, 1, 2, 0, 0}), "�é���");
}

TEST_F(TokenizerJsonTest, IdsOutsideTheVocabulary) {
  json document = small_tokenizer();
  document["added_tokens"] = json::array();
  document["model"]["vocab"]["d"] = 20;
  const auto tokenizer = load(document);
  EXPECT_EQ(tokenizer->vocab_size(), 21);
  EXPECT_THAT(message_of([&] {
                tokenizer->decode(Ids{1, 21});
              }),
              HasSubstr("token id 21 at place 1 is outside the vocabulary; expected 0 … 20"));
  EXPECT_THAT(message_of([&] { tokenizer->decode(Ids{-1}); }), HasSubstr("token id -1 at place 0 is outside"));
  EXPECT_THAT(message_of([&] { tokenizer->piece(15); }), HasSubstr("token id 15 at place 0 has no token"));
}

TEST_F(TokenizerJsonTest, SpecialTokensAsThePostProcessorHasThem) {
  json document = small_tokenizer();
  document["post_processor"] = json::parse(R"({"type": "Sequence", "processors": [
    {"type": "ByteLevel"},
    {"type": "TemplateProcessing",
     "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
     "pair": [], "special_tokens": {"<s>": {"id": "<s>", "ids": [9], "tokens": ["<s>"]}}}]})");
  EXPECT_THAT(load(document)->add_special_tokens({1, 2}), ElementsAre(9, 1, 2));
  folder_.write("tokenizer_config.json", R"({"bos_token": null, "eos_token": {"content": "c"}})");
  EXPECT_THAT(load(document)->add_special_tokens({1, 2}), ElementsAre(9, 1, 2));
  EXPECT_EQ(load(document)->bos_id(), std::nullopt);
  EXPECT_EQ(load(document)->eos_id(), 3);
  folder_.write("tokenizer_config.json", R"({"bos_token": "<s>", "eos_token": "c", "add_eos_token": true})");
  EXPECT_THAT(load(document)->add_special_tokens({1, 2}), ElementsAre(1, 2, 3))
      << "add_..._token replaces the template";
  EXPECT_EQ(load(document)->bos_id(), 9);
}

TEST_F(TokenizerJsonTest, ConfigAddsTokens) {
  folder_.write("tokenizer_config.json", R"({"added_tokens_decoder": {
    "10": {"content": "<x>", "normalized": false, "special": true},
    "9": {"content": "<s>", "lstrip": true, "normalized": false, "special": true}}})");
  EXPECT_THAT(load(small_tokenizer())->encode("a <s><x>b"), ElementsAre(1, 9, 10, 2)) << "<s> takes the space now";
  folder_.write("tokenizer_config.json", R"({"added_tokens_decoder": {"12": {"content": "<x>"}}})");
  EXPECT_THAT(
      fault(small_tokenizer()),
      HasSubstr("tokenizer_config.json: added_tokens_decoder.12: token '<x>' has id 12; expected 10, the next free"));
  folder_.write("tokenizer_config.json", R"({"added_tokens_decoder": {"x": {"content": "<x>"}}})");
  EXPECT_THAT(fault(small_tokenizer()), HasSubstr("added_tokens_decoder.x: expected a token id as the key"));
  folder_.write("tokenizer_config.json", R"({"bos_token": "<none>"})");
  EXPECT_THAT(fault(small_tokenizer()),
              HasSubstr("tokenizer_config.json: bos_token: '<none>' is not in the vocabulary"));
  folder_.write("tokenizer_config.json", R"({"bos_token": 5})");
  EXPECT_THAT(fault(small_tokenizer()), HasSubstr("tokenizer_config.json: bos_token: found 5, expected a string"));
}

TEST_F(TokenizerJsonTest, SpecialTokensMapNamesWhatTheConfigDoesNot) {
  folder_.write("tokenizer_config.json", R"({"bos_token": "<s>"})");
  folder_.write("special_tokens_map.json", R"({"bos_token": "a", "eos_token": "b", "add_bos_token": true})");
  const auto tokenizer = load(small_tokenizer());
  EXPECT_EQ(tokenizer->bos_id(), 9);
  EXPECT_EQ(tokenizer->eos_id(), 2);
  EXPECT_THAT(tokenizer->add_special_tokens({1}), ElementsAre(1));
}

TEST_F(TokenizerJsonTest, HashCoversAllFilesThatDecideIds) {
  const std::string text = small_tokenizer().dump();
  EXPECT_EQ(load(small_tokenizer())->sha256(), sha256_hex(text));
  const std::string config = R"({"bos_token": "<s>"})";
  folder_.write("tokenizer_config.json", config);
  EXPECT_EQ(load(small_tokenizer())->sha256(),
            sha256_hex(sha256_hex(text) + "  tokenizer.json\n" + sha256_hex(config) + "  tokenizer_config.json\n"));
}

TEST_F(TokenizerJsonTest, DescribesItself) {
  const auto tokenizer = load(small_tokenizer());
  EXPECT_EQ(tokenizer->kind(), "bpe");
  EXPECT_EQ(tokenizer->file(), folder_.path() / "tokenizer.json");
  EXPECT_EQ(tokenizer->bos_id(), std::nullopt);
}

TEST_F(TokenizerJsonTest, AModelWithoutTypeIsTakenByItsMembers) {
  json document = small_tokenizer();
  document["model"].erase("type");
  EXPECT_THAT(load(document)->encode("abc"), ElementsAre(6));
  document["model"].erase("merges");
  EXPECT_THAT(fault(document), HasSubstr("tokenizer.json: model: 'type' is missing"));
}

TEST_F(TokenizerJsonTest, UnsupportedPartsAreRefusedByName) {
  const auto expect = [&](const std::string& pointer, const std::string& value, const std::string& message) {
    EXPECT_THAT(fault_with(pointer, value), HasSubstr("tokenizer.json: " + message)) << pointer << " = " << value;
  };
  expect("/model/type", R"("Unigram")", "model: type 'Unigram' is not supported; expected 'BPE'");
  expect("/model/type", R"("WordPiece")", "model: type 'WordPiece' is not supported; expected 'BPE'");
  expect("/normalizer", R"({"type": "Precompiled"})",
         "normalizer.type: \"Precompiled\" is not supported; expected one of NFC, NFD, NFKC");
  expect("/pre_tokenizer", R"({"type": "Sequence", "pretokenizers": [{"type": "UnicodeScripts"}]})",
         "pre_tokenizer.pretokenizers[0].type: \"UnicodeScripts\" is not supported; expected one of ByteLevel, Split");
  expect("/decoder", R"({"type": "CTC"})", "decoder.type: \"CTC\" is not supported; expected one of ByteLevel");
  expect("/post_processor", R"({"type": "BertProcessing"})",
         "post_processor.type: \"BertProcessing\" is not supported; expected one of TemplateProcessing");
  expect("/model/dropout", "0.1", "model.dropout: found 0.1, expected null or 0");
}

TEST_F(TokenizerJsonTest, MalformedModels) {
  const auto expect = [&](const std::string& pointer, const std::string& value, const std::string& message) {
    EXPECT_THAT(fault_with(pointer, value), HasSubstr("tokenizer.json: " + message)) << pointer << " = " << value;
  };
  expect("/model", "null", "'model' is missing or null");
  expect("/model", "[]", "model: found a list of 0 elements, expected an object");
  expect("/model/type", "7", "model.type: found 7, expected a string");
  expect("/model/vocab", "[]", "model.vocab: found a list of 0 elements, expected an object");
  expect("/model/vocab/a", "-1", "model.vocab['a']: found -1, expected a token id");
  expect("/model/vocab/a", "1.5", "model.vocab['a']: found 1.5, expected a token id");
  expect("/model/vocab/a", "18446744073709551615", "model.vocab['a']: found 18446744073709551615, expected a token id");
  expect("/model/vocab/a", "2147483647", "model.vocab['a']: found 2147483647, expected a token id");
  expect("/model/vocab/a", "2", "model.vocab: 'a' and 'b' have the same id 2");
  expect("/model/merges", "{}", "model.merges: found an object of 0 members, expected a list");
  expect("/model/merges/1", R"("ab")", "model.merges[1]: found \"ab\", expected two tokens");
  expect("/model/merges/1", R"("a b c")", "model.merges[1]: found \"a b c\", expected two tokens");
  expect("/model/merges/1", R"(["a"])", "model.merges[1]: found a list of 1 elements, expected two tokens");
  expect("/model/merges/1", R"(["a", 1])", "model.merges[1]: found a list of 2 elements, expected two tokens");
  expect("/model/merges/1", R"("a x")", "model.merges[1]: 'x' is not in the vocabulary");
  expect("/model/merges/1", R"("c a")", "model.merges[1]: 'ca' is not in the vocabulary");
  expect("/model/continuing_subword_prefix", R"("##")", "model.merges[0]: found \"b c\", expected a second part");
  expect("/model/byte_fallback", "1", "model.byte_fallback: found 1, expected true or false");
  expect("/model/unk_token", "0", "model.unk_token: found 0, expected a string");
  expect("/added_tokens", "{}", "added_tokens: found an object of 0 members, expected a list");
  expect("/added_tokens/0/content", "null", "added_tokens[0]: 'content' is missing or null");
  expect("/added_tokens/0/id", "5", "added_tokens[0]: token '<s>' has id 5; expected 9, the next free one");
  expect("/added_tokens/0/content", R"("b")", "added_tokens[0]: token 'b' has id 9; expected 2, as in the vocabulary");
  expect("/added_tokens/0/lstrip", "\"yes\"", "added_tokens[0].lstrip: found \"yes\", expected true or false");
}

TEST_F(TokenizerJsonTest, MalformedParts) {
  const auto expect = [&](const std::string& pointer, const std::string& value, const std::string& message) {
    EXPECT_THAT(fault_with(pointer, value), HasSubstr("tokenizer.json: " + message)) << pointer << " = " << value;
  };
  expect("/normalizer", R"("NFC")", "normalizer: found \"NFC\", expected an object");
  expect("/normalizer", R"({"type": "Strip", "strip_left": true})", "normalizer: 'strip_right' is missing");
  expect("/normalizer", R"({"type": "Replace", "pattern": {}, "content": ""})",
         "normalizer.pattern: found an object of 0 members, expected a member String or Regex");
  expect("/normalizer", R"({"type": "Sequence", "normalizers": {}})",
         "normalizer.normalizers: found an object of 0 members, expected a list");
  expect("/pre_tokenizer", R"({"type": "Split", "pattern": {"Regex": "(a"}, "behavior": "Isolated"})",
         "pre_tokenizer.pattern.Regex: pattern '(a': byte 2: a group is not closed");
  expect("/pre_tokenizer", R"({"type": "Split", "pattern": {"Regex": "a"}, "behavior": "Isolate"})",
         "pre_tokenizer.behavior: \"Isolate\" is not supported; expected one of Removed, Isolated");
  expect("/pre_tokenizer", R"({"type": "Metaspace", "replacement": "__"})",
         "pre_tokenizer.replacement: found \"__\", expected one character");
  expect("/pre_tokenizer", R"({"type": "Metaspace", "replacement": "_", "prepend_scheme": "last"})",
         "pre_tokenizer.prepend_scheme: \"last\" is not supported; expected one of always, never, first");
  expect("/pre_tokenizer",
         R"({"type": "Metaspace", "replacement": "_", "prepend_scheme": "first", "add_prefix_space": false})",
         "pre_tokenizer.prepend_scheme: found \"first\", expected \"never\"");
  expect("/decoder", R"({"type": "Strip", "content": " ", "start": -1, "stop": 0})",
         "decoder.start: found -1, expected a whole number from 0");
  expect("/post_processor", R"({"type": "TemplateProcessing", "single": [], "special_tokens": {}})",
         "post_processor.single: expected the text ($A) once");
  expect("/post_processor",
         R"({"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<x>"}}], "special_tokens": {}})",
         "post_processor.special_tokens: '<x>' is missing");
  expect("/post_processor",
         R"({"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "x"}}, {"Sequence": {"id": "A"}}],
             "special_tokens": {"x": {"ids": [77]}}})",
         "post_processor: id 77 is not in the vocabulary");
}

TEST_F(TokenizerJsonTest, FilesThatAreNotJson) {
  const auto fault_of = [&](const std::string& text) {
    folder_.write("tokenizer.json", text);
    return message_of([&] { load_tokenizer(folder_.path()); });
  };
  EXPECT_THAT(fault_of("{\"model\": "), HasSubstr("tokenizer.json: byte 11: not JSON; expected an object in UTF-8"));
  EXPECT_THAT(fault_of("{\"a\": \"\xFF\"}"), HasSubstr("tokenizer.json: byte 8: not JSON"));
  EXPECT_THAT(fault_of("[]"), HasSubstr("tokenizer.json: found a list of 0 elements, expected an object"));
  EXPECT_THAT(fault_of(""), HasSubstr("tokenizer.json: "));
  EXPECT_THAT(fault_of(std::string(1000000, '[')), HasSubstr("tokenizer.json: byte 1000001: not JSON"));
  EXPECT_THAT(fault_of(std::string(100000, '[') + std::string(100000, ']')), HasSubstr("expected an object"));
}

TEST_F(TokenizerJsonTest, NestingHasABound) {
  for (const auto& [part, list] : {std::pair("normalizer", "normalizers"), std::pair("pre_tokenizer", "pretokenizers"),
                                   std::pair("decoder", "decoders"), std::pair("post_processor", "processors")}) {
    std::string nested = std::string(part) == "normalizer" ? R"({"type": "NFC"})" : R"({"type": "ByteLevel"})";
    std::string opened, closed;
    for (int depth = 0; depth < 10000; ++depth) {
      opened += std::string(R"({"type": "Sequence", ")") + list + "\": [";
      closed += "]}";
    }
    nested = opened + nested + closed;
    // As text, as the library would write so deep a document by recursion.
    std::string document = small_tokenizer().dump();
    document.insert(1, std::string("\"") + part + "\": " + nested + ", ");
    const std::string null_member = std::string(",\"") + part + "\":null";
    document.erase(document.find(null_member), null_member.size());
    folder_.write("tokenizer.json", document);
    EXPECT_THAT(message_of([&] { load_tokenizer(folder_.path()); }),
                HasSubstr("sequences are nested too deeply; expected at most 16"))
        << part;
  }
}

// What takes quadratic time would not end here.
TEST_F(TokenizerJsonTest, LongWords) {
  constexpr std::size_t length = 3000000;
  EXPECT_EQ(load(small_tokenizer())->encode(std::string(length, 'a')).size(), length);
  std::string word;
  for (std::size_t i = 0; i < length / 3; ++i) word += "abc";
  EXPECT_EQ(load(small_tokenizer())->encode(word), Ids(length / 3, 6));

  std::string marks = "a";
  for (std::size_t i = 0; i < length / 4; ++i) marks += "\u0301\u0323";  // each pair in the wrong order
  EXPECT_TRUE(load_with("/normalizer", R"({"type": "NFC"})")->encode(marks).empty()) << "ạ́ is not in the vocabulary";

  const json words = json::parse(R"({"type": "ByteLevel", "add_prefix_space": false})");
  json document = small_tokenizer();
  document["pre_tokenizer"] = words;
  EXPECT_TRUE(load(document)->encode(std::string(length, ' ')).empty());
  EXPECT_EQ(load(document)->encode(std::string(length, 'c')).size(), length);
}

TEST_F(TokenizerJsonTest, LongRunsOfSpacesThatAPatternGivesBack) {
  const auto tokenizer = load_with(
      "/pre_tokenizer", R"({"type": "Split", "pattern": {"Regex": "\\s*[\\r\\n]+|\\s+"}, "behavior": "Removed"})");
  EXPECT_THAT(tokenizer->encode("a" + std::string(11000000, ' ') + "b"), ElementsAre(1, 2));
}

TEST_F(TokenizerJsonTest, PatternsThatBacktrackTooFarAreReported) {
  json document = small_tokenizer();
  document["pre_tokenizer"] =
      json::parse(R"({"type": "Split", "pattern": {"Regex": "(a|aa)+[bc]"}, "behavior": "Isolated"})");
  const auto tokenizer = load(document);
  EXPECT_THAT(message_of([&] { tokenizer->encode(std::string(100, 'a')); }),
              HasSubstr("pre_tokenizer.pattern.Regex: matching from byte 0: match limit exceeded"));
}

TEST_F(TokenizerJsonTest, SeveralThreadsEncodeAlike) {
  json document = small_tokenizer();
  document["pre_tokenizer"] = json::parse(R"({"type": "ByteLevel", "add_prefix_space": false})");
  const auto tokenizer = load(document);
  std::string text;
  for (int i = 0; i < 20000; ++i) text += std::string("abcab").substr(0, 1 + i * 7 % 5) + (i % 3 == 0 ? " " : ".");
  const Ids expected = tokenizer->encode(text);
  std::vector<std::future<Ids>> others;
  for (int i = 0; i < 4; ++i) others.push_back(std::async(std::launch::async, [&] { return tokenizer->encode(text); }));
  for (auto& other : others) EXPECT_EQ(other.get(), expected);
}

}  // namespace
}  // namespace replayeval::datasets
