#include "datasets/oniguruma_pattern.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "datasets/regex.h"
#include "tests/temporary_folder.h"

namespace replayeval::datasets {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// The parts of `text`, matches in brackets. What Oniguruma finds was taken from the tokenizers library.
std::vector<std::string> parts(const std::string& pattern, const std::string& text) {
  std::vector<Match> matches;
  Regex(pcre2_from_oniguruma(pattern, "test"), "test").find_all(text, matches);
  std::vector<std::string> found;
  for (const Match& match : matches) {
    const std::string part = text.substr(match.begin, match.end - match.begin);
    found.push_back(match.is_match ? "[" + part + "]" : part);
  }
  return found;
}

std::string fault(const std::string& pattern) {
  return message_of([&] { Regex(pcre2_from_oniguruma(pattern, "test"), "test"); });
}

TEST(OnigurumaPattern, RepeatedIntervalsAreNotPossessive) {
  EXPECT_THAT(parts("[0-9]{1,3}+", "1234567x12"), ElementsAre("[1234567]", "x", "[12]"));
  EXPECT_THAT(parts("a{1,2}+a", "aaaa"), ElementsAre("[aaaa]"));
  EXPECT_THAT(parts("x{,2}y", "xxxy"), ElementsAre("x", "[xxy]"));
  EXPECT_THAT(parts("a{2}?b", "b"), ElementsAre("[b]"));
  EXPECT_THAT(parts("a{1,2}?", "aa"), ElementsAre("[a]", "[a]"));
  EXPECT_THAT(parts("a++a|b", "aab"), ElementsAre("aa", "[b]"));
}

TEST(OnigurumaPattern, AnchorsAreOfLines) {
  EXPECT_THAT(parts("a$", "a\na\r\na"), ElementsAre("[a]", "\na\r\n", "[a]"));
  EXPECT_THAT(parts("^a", "a\na"), ElementsAre("[a]", "\n", "[a]"));
  EXPECT_THAT(parts("a\\z", "a\na"), ElementsAre("a\n", "[a]"));
  EXPECT_THAT(parts("a.", "a\na\ra"), ElementsAre("a\n", "[a\r]", "a"));
}

TEST(OnigurumaPattern, Classes) {
  EXPECT_THAT(parts("\\s", "\u180E\u2003"), ElementsAre("\u180E", "[\u2003]"));
  EXPECT_THAT(parts("\\S", "\u180E\u2003"), ElementsAre("[\u180E]", "\u2003"));
  EXPECT_THAT(parts("[^\\S\\n]+", " \n\t"), ElementsAre("[ ]", "\n", "[\t]"));
  EXPECT_THAT(parts("\\w+", "a\u0301_Ⅷ²"), ElementsAre("[a\u0301_Ⅷ]", "²"));
  EXPECT_THAT(parts("\\h+", "0aFg "), ElementsAre("[0aF]", "g "));
  EXPECT_THAT(parts("\\v", "\n\v"), ElementsAre("\n", "[\v]"));
  EXPECT_THAT(parts("[\\d\\-\\]a-c]+", "d1b-]e"), ElementsAre("d", "[1b-]]", "e"));
  EXPECT_THAT(parts("\\p{^L}\\P{Nd}\\p{Letter}", "1ab"), ElementsAre("[1ab]"));
  EXPECT_THAT(parts("\\p{Han}", "漢、"), ElementsAre("[漢]", "、")) << "、 is Han by Script_Extensions alone";
  EXPECT_THAT(parts("\\bd", "cd d"), ElementsAre("cd ", "[d]"));
  EXPECT_THAT(parts("\\Bd", "cd d"), ElementsAre("c", "[d]", " d"));
}

TEST(OnigurumaPattern, CaseInsensitiveParts) {
  EXPECT_THAT(parts("'(?i:s|ll)x", "'Sx'ſx'lLx'sX"), ElementsAre("['Sx]", "['ſx]", "['lLx]", "'sX"));
  EXPECT_THAT(parts("(?i)k(?-i:k)", "\u212Ak\u212AK"), ElementsAre("[\u212Ak]", "\u212AK"));
}

TEST(OnigurumaPattern, LiteralsAndEscapes) {
  EXPECT_THAT(parts("a{x}|b{", "a{x}b{"), ElementsAre("[a{x}]", "[b{]"));
  EXPECT_THAT(parts("\\x41\\x{42}\\u0043\\#", "ABC#"), ElementsAre("[ABC#]"));
  EXPECT_THAT(parts("", "aé"), ElementsAre("[]", "a", "[]", "é", "[]"));
}

TEST(OnigurumaPattern, RefusesWhatItCannotTranslate) {
  for (const auto& [pattern, message] : std::vector<std::pair<std::string, std::string>>{
           {"[a[bc]]", "byte 2: a class within a class is not supported"},
           {"[a-c&&b]", "byte 4: an intersection of classes is not supported"},
           {"[[:alpha:]]", "byte 1: a class within a class"},
           {"[]a]", "byte 1: a class that begins with ]"},
           {"[a", "a class is not closed"},
           {"[a-\\d]", "expected a character that is not before the range's first"},
           {"[\\d-a]", "expected a single character before -"},
           {"[b-a]", "expected a character that is not before"},
           {"[\\W]", "\\W in a class is not supported"},
           {"[\\b]", "\\b in a class is not supported"},
           {"(a)\\1", "byte 4: the escape \\1 is not supported"},
           {"\\Kx", "the escape \\K is not supported"},
           {"\\X", "the escape \\X is not supported"},
           {"\\xe9", "the number is not that of a character"},
           {"\\x{110000}", "the number is not that of a character"},
           {"\\u12", "expected hexadecimal digits"},
           {"\\", "ends too early"},
           {"\\p{Nope}", "unknown property"},
           {"\\p{L&}", "the property 'L&' is not supported"},
           {"\\p{L", "\\p{ is not closed"},
           {"\\pL", "expected { after \\p"},
           {"(?m:.)", "this kind of group is not supported"},
           {"a(?i)b", "this kind of group is not supported"},
           {"(?<name>a)", "this kind of group is not supported"},
           {"(a", "a group is not closed"},
           {"a)", "byte 1: a ) without its ("},
           {"*a", "byte 0: nothing to repeat"},
           {"a|*", "byte 2: nothing to repeat"},
           {"{1}", "byte 0: nothing to repeat"},
           {"a**", "byte 2: a repeated repetition is not supported"},
           {"a{2,1}", "expected an interval from low to high"},
           {"a{99999999999}", "expected a repetition of at most 65535"},
           {"(?i:ss)", "a case-insensitive ss, st, ff, fi or fl"},
           {"(?i:é)", "a letter outside ASCII in a case-insensitive part"},
           {"(?i:[é])", "a letter outside ASCII in a case-insensitive part"},
           {"(?i:\\p{L})", "\\p in a case-insensitive part"},
           {"(?<=a+)d", "lookbehind assertion is not fixed length"},
           {std::string("a\xff"), "is not UTF-8"},
           {std::string(300, '('), "expected at most 200 groups in one another"},
           {std::string(70000, 'a'), "pattern of 70000 bytes; expected at most 65536"},
       }) {
    EXPECT_THAT(fault(pattern), HasSubstr(message)) << pattern.substr(0, 50);
    EXPECT_THAT(fault(pattern), HasSubstr("test: ")) << pattern.substr(0, 50);
  }
}

}  // namespace
}  // namespace replayeval::datasets
