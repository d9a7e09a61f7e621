#include "datasets/text_source.h"

#include <gmock/gmock.h>

#include <set>
#include <string>
#include <vector>

#include "datasets/sha256.h"
#include "tests/datasets/gzipped.h"
#include "tests/temporary_folder.h"

namespace replayeval::datasets {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class TextSourceTest : public testing::Test {
 protected:
  TextSource open(const nlohmann::json& spec) const {
    return TextSource::open(parse_text_source(spec, "test.yaml: sources[0]"), folder_.path());
  }
  std::string open_fault(const nlohmann::json& spec) const {
    return message_of([&] { open(spec); });
  }
  static std::vector<std::string> ids(TextSource source) {
    std::vector<std::string> all;
    while (auto document = source.next()) all.push_back(document->id);
    return all;
  }
  static std::vector<std::string> texts(TextSource source) {
    std::vector<std::string> all;
    while (auto document = source.next()) all.push_back(document->text);
    return all;
  }

  TemporaryFolder folder_;
};

TEST_F(TextSourceTest, FilesComeInBytewiseOrder) {
  for (const char* name : {"b.txt", "a.txt", "B.txt", "a10.txt", "a2.txt"})
    folder_.write(name, std::string("text of ") + name);
  EXPECT_THAT(ids(open("*.txt")), ElementsAre("B", "a", "a10", "a2", "b"));
}

TEST_F(TextSourceTest, TextPassesUnchanged) {
  const std::string text = " caf\xc3\xa9\r\n\n\tend without newline";
  folder_.write("one.txt", text);
  EXPECT_THAT(texts(open("one.txt")), ElementsAre(text));
}

TEST_F(TextSourceTest, GzipIsKnownByItsContent) {
  folder_.write("packed.txt.gz", gzipped("packed"));
  folder_.write("plainly_named.txt", gzipped("two ") + gzipped("members"));
  folder_.write("lies.gz", "not packed at all");
  EXPECT_THAT(texts(open("*")), ElementsAre("not packed at all", "packed", "two members"));
  EXPECT_THAT(ids(open("packed*")), ElementsAre("packed"));
}

TEST_F(TextSourceTest, HashIsOfTheTextWhateverThePacking) {
  folder_.write("a.txt", "the same text");
  folder_.write("b.gz", gzipped("the same text"));
  EXPECT_EQ(open("a.txt").sha256(), sha256_hex("the same text"));
  EXPECT_EQ(open("b.gz").sha256(), open("a.txt").sha256());
}

TEST_F(TextSourceTest, HashOfSeveralFilesIsThatOfTheirListing) {
  folder_.write("a.txt", "first");
  folder_.write("b.txt", "second");
  EXPECT_EQ(open("*.txt").sha256(), sha256_hex(sha256_hex("first") + "  a.txt\n" + sha256_hex("second") + "  b.txt\n"));
}

TEST_F(TextSourceTest, PinnedHash) {
  folder_.write("a.txt", "pinned");
  EXPECT_EQ(open({{"path", "a.txt"}, {"sha256", sha256_hex("pinned")}}).document_count(), 1);
  EXPECT_THAT(open_fault({{"path", "a.txt"}, {"sha256", sha256_hex("other")}}),
              AllOf(HasSubstr("a.txt: sha256"), HasSubstr("expected " + sha256_hex("other")),
                    HasSubstr("found " + sha256_hex("pinned"))));
}

TEST_F(TextSourceTest, SeparatorLinesPartDocuments) {
  folder_.write("many.txt", "%\nfirst\nstill first\n%\nsecond % not alone\n%\n \n%\r\nthird");
  const nlohmann::json spec = {{"path", "many.txt"}, {"separator", "%"}};
  EXPECT_THAT(texts(open(spec)), ElementsAre("first\nstill first\n", "second % not alone\n", "third"));
  EXPECT_THAT(ids(open(spec)), ElementsAre("many#0", "many#1", "many#2"));
}

TEST_F(TextSourceTest, SeparatorIsARegularExpressionOverAWholeLine) {
  folder_.write("many.txt", "a\n=== one ===\nb\n=== x\nc\n====\nd");
  EXPECT_THAT(texts(open({{"path", "many.txt"}, {"separator", "=+( \\w+ =+)?"}})),
              ElementsAre("a\n", "b\n=== x\nc\n", "d"));
  EXPECT_THAT(open_fault({{"path", "many.txt"}, {"separator", "(="}}),
              AllOf(HasSubstr("separator '(='"), HasSubstr("at byte 2")));
}

TEST_F(TextSourceTest, SeparatorThatBacktracksWithoutEnd) {
  folder_.write("many.txt", "first\n%\n" + std::string(40, 'a') + "\nsecond");
  TextSourceSpec spec = parse_text_source({{"path", "many.txt"}, {"separator", "%|(a+)+[bc]"}}, "test.yaml");
  const auto fault = [&] { return message_of([&] { TextSource::open(spec, folder_.path()); }); };
  EXPECT_THAT(fault(), AllOf(HasSubstr("many.txt: line 3: separator '%|(a+)+[bc]' (text source many): "),
                             HasSubstr("limit"), HasSubstr("expected a pattern")));
  spec.separator_place = "configs/x.yaml:9:7";
  EXPECT_THAT(fault(), HasSubstr("many.txt: line 3: separator '%|(a+)+[bc]' (configs/x.yaml:9:7): "));
}

TEST_F(TextSourceTest, RewindAndCopiesReadTheSame) {
  folder_.write("a.txt", "a");
  folder_.write("b.txt", "b");
  TextSource source = open("*.txt");
  EXPECT_EQ(source.next()->text, "a");
  TextSource copy = source;  // goes on from here, without disturbing the first
  EXPECT_EQ(copy.next()->text, "b");
  EXPECT_FALSE(copy.next());
  EXPECT_EQ(source.next()->text, "b");
  source.rewind();
  EXPECT_EQ(source.next()->text, "a");
}

TEST_F(TextSourceTest, MaxDocumentsTakesTheFirstOnes) {
  for (int i = 0; i < 5; ++i) folder_.write(std::to_string(i) + ".txt", "text");
  TextSource source = open({{"path", "*.txt"}, {"max_documents", 2}});
  EXPECT_EQ(source.document_count(), 2);
  EXPECT_THAT(ids(source), ElementsAre("0", "1"));
}

TEST_F(TextSourceTest, SamplingIsTheSameEveryTimeAndKeepsTheOrder) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += "document " + std::to_string(i) + "\n%\n";
  folder_.write("many.txt", text);
  const auto sample = [&](int seed) {
    return ids(open({{"path", "many.txt"}, {"separator", "%"}, {"max_documents", 10}, {"sample_seed", seed}}));
  };
  EXPECT_EQ(sample(7), sample(7));
  EXPECT_NE(sample(7), sample(8));
  std::vector<int> numbers;
  for (const std::string& id : sample(7)) numbers.push_back(std::stoi(id.substr(id.find('#') + 1)));
  EXPECT_EQ(std::set<int>(numbers.begin(), numbers.end()).size(), 10U);
  EXPECT_TRUE(std::is_sorted(numbers.begin(), numbers.end()));
  EXPECT_GT(numbers.back(), 9) << "a sample, not the first ten";
}

TEST_F(TextSourceTest, DescribesItselfForTheResults) {
  folder_.write("corpus/a.txt", "four");
  const nlohmann::json description = open("corpus/*.txt").describe();
  EXPECT_EQ(description.at("name"), "corpus");
  EXPECT_EQ(description.at("path"), "corpus/*.txt");
  EXPECT_EQ(description.at("documents"), 1);
  EXPECT_EQ(description.at("bytes"), 4);
  EXPECT_EQ(description.at("sha256"), sha256_hex("four"));
}

TEST_F(TextSourceTest, MissingFile) {
  EXPECT_THAT(open_fault("absent/*.txt"),
              AllOf(HasSubstr("absent/*.txt: no such file"), HasSubstr("expected at least one")));
}

TEST_F(TextSourceTest, FolderInsteadOfFile) {
  folder_.write("sub/a.txt", "text");
  EXPECT_THAT(open_fault("sub"), AllOf(HasSubstr("sub: is a folder"), HasSubstr("expected a file")));
}

TEST_F(TextSourceTest, EmptyAndBlankFiles) {
  folder_.write("empty.txt", "");
  folder_.write("blank.txt", " \n\t\r\n");
  folder_.write("separators.txt", "%\n%\n");
  folder_.write("packed_nothing.gz", gzipped(""));
  EXPECT_THAT(open_fault("empty.txt"), HasSubstr("empty.txt: is empty; expected UTF-8 text"));
  EXPECT_THAT(open_fault("blank.txt"), HasSubstr("blank.txt: holds nothing but white space"));
  EXPECT_THAT(open_fault({{"path", "separators.txt"}, {"separator", "%"}}), HasSubstr("nothing but separator lines"));
  EXPECT_THAT(open_fault("packed_nothing.gz"), HasSubstr("is empty"));
}

TEST_F(TextSourceTest, NotUtf8) {
  folder_.write("latin1.txt", "caf\xe9");
  folder_.write("packed.gz", gzipped("ok \xc3\x28"));
  EXPECT_THAT(open_fault("latin1.txt"), AllOf(HasSubstr("latin1.txt: byte 3: found e9"), HasSubstr("expected UTF-8")));
  EXPECT_THAT(open_fault("packed.gz"), HasSubstr("packed.gz: byte 3: found c3 28"));
}

TEST_F(TextSourceTest, DamagedGzip) {
  const std::string whole = gzipped(std::string(10000, 'x') + "some end");
  folder_.write("truncated.gz", whole.substr(0, whole.size() - 9));
  folder_.write("no_trailer.gz", whole.substr(0, whole.size() - 4));
  folder_.write("trailing.gz", whole + "junk");
  std::string damaged = whole;
  damaged[damaged.size() - 6] ^= 0x55;  // its checksum
  folder_.write("checksum.gz", damaged);
  EXPECT_THAT(open_fault("truncated.gz"), HasSubstr("truncated.gz: truncated gzip"));
  EXPECT_THAT(open_fault("no_trailer.gz"), HasSubstr("no_trailer.gz: truncated gzip"));
  EXPECT_THAT(open_fault("trailing.gz"), HasSubstr("begins what is not gzip"));
  EXPECT_THAT(open_fault("checksum.gz"), HasSubstr("checksum.gz: damaged gzip"));
}

TEST_F(TextSourceTest, EveryPrefixOfAGzipFileIsRefused) {
  const std::string whole = gzipped("a text that is packed");
  for (std::size_t size = 3; size < whole.size(); ++size) {
    folder_.write("part.gz", whole.substr(0, size));
    EXPECT_THAT(open_fault("part.gz"), HasSubstr("part.gz: truncated gzip"))
        << size << " of " << whole.size() << " bytes";
  }
}

TEST_F(TextSourceTest, SpecFaults) {
  const auto fault = [](const nlohmann::json& spec) {
    return message_of([&] { parse_text_source(spec, "demo.yaml: sources[1]"); });
  };
  EXPECT_THAT(fault({{"path", "a"}, {"paht", "b"}}),
              AllOf(HasSubstr("demo.yaml: sources[1].paht: unknown key"), HasSubstr("expected one of path, name")));
  EXPECT_THAT(fault(nlohmann::json::object()), HasSubstr("sources[1].path: missing"));
  EXPECT_THAT(fault(17), HasSubstr("found 17, expected a path"));
  EXPECT_THAT(fault({{"path", 3}}), HasSubstr("sources[1].path: found 3, expected a string"));
  EXPECT_THAT(fault({{"path", "a"}, {"max_documents", -1}}),
              HasSubstr("max_documents: found -1, expected a whole number"));
  EXPECT_THAT(fault({{"path", "a"}, {"max_tokens", 1.5}}), HasSubstr("max_tokens: found 1.5"));
  EXPECT_THAT(fault({{"path", "a"}, {"sha256", "abc"}}), HasSubstr("sha256: found 'abc', expected 64"));
  EXPECT_THAT(fault({{"path", "a"}, {"sample_seed", 1}}), HasSubstr("means nothing without max_documents"));
}

TEST_F(TextSourceTest, SpecRoundTrip) {
  const nlohmann::json spec = {{"path", "x/*.gz"},   {"name", "n"},     {"separator", "%"}, {"sha256", sha256_hex("")},
                               {"max_documents", 3}, {"max_tokens", 4}, {"sample_seed", 5}};
  EXPECT_EQ(to_json(parse_text_source(spec, "here")), spec);
}

TEST_F(TextSourceTest, FileThatChangesAfterOpeningIsRefused) {
  folder_.write("a.txt", "text");
  TextSource source = open("a.txt");
  folder_.write("a.txt", "next");
  EXPECT_THAT(message_of([&] { source.next(); }), HasSubstr("a.txt: has changed since it was opened"));
}

}  // namespace
}  // namespace replayeval::datasets
