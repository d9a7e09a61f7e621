// Against what CPython prints.
#include "datasets/tasks/python_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "datasets/error.h"
#include "datasets/tasks/python_json.h"
#include "datasets/tasks/python_literal.h"
#include "datasets/tasks/python_random.h"
#include "datasets/tasks/python_regex.h"
#include "tests/datasets/tasks/scratch_folder.h"

namespace replayeval::tasks {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(PythonText, WhiteSpaceAtTheEnd) {
  EXPECT_EQ(size_without_trailing_space("a \n\t\xC2\xA0\xE3\x80\x80\x1F\xC2\x85"), 1U);
  EXPECT_EQ(size_without_trailing_space("a\xE2\x80\x8B"), 4U);  // U+200B is no white space
  EXPECT_EQ(size_without_trailing_space(" \n"), 0U);
  EXPECT_EQ(strip("\x1C a b \xE2\x80\xA8"), "a b");
}

TEST(PythonText, Lower) {
  EXPECT_EQ(lower("ÄÉ STRASSE Łódź"), "äé strasse łódź");
  EXPECT_EQ(lower("İ"), "i\xCC\x87");
  EXPECT_EQ(lower("ΟΔΟΣ"), "οδος");
  EXPECT_EQ(lower("ΟΔΟΣ ΣΑΣ"), "οδος σας");
  EXPECT_EQ(lower("Σ"), "σ");        // nothing cased before it
  EXPECT_EQ(lower("ΑΣ'"), "ας'");    // an apostrophe does not count
  EXPECT_EQ(lower("ΑΣ'Α"), "ασ'α");  // nor here
  EXPECT_EQ(lower("Α.Σ"), "α.ς");    // a full stop is case-ignorable
  EXPECT_EQ(lower("ẞ"), "ß");
}

TEST(PythonText, PunctuationAndDigits) {
  EXPECT_EQ(without_punctuation("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~a 1Z¿…"), "a 1Z¿…");
  EXPECT_EQ(without_digits("a0123456789٣"), "a٣");
}

TEST(PythonText, Counts) {
  EXPECT_EQ(code_point_count("aé東🙂"), 4);
  EXPECT_EQ(word_count(""), 1);
  EXPECT_EQ(word_count(" "), 2);
  EXPECT_EQ(word_count("one  two\x1Fthree\xE2\x80\xA8"), 4);
}

TEST(PythonText, Floats) {
  EXPECT_EQ(python_float(-1.7), "-1.7");
  EXPECT_EQ(python_float(3), "3.0");
  EXPECT_EQ(python_float(-0.0), "-0.0");
  EXPECT_EQ(python_float(1e-4), "0.0001");
  EXPECT_EQ(python_float(1.5e-5), "1.5e-05");
  EXPECT_EQ(python_float(1e15), "1000000000000000.0");
  EXPECT_EQ(python_float(1e16), "1e+16");
  EXPECT_EQ(python_float(1.25e100), "1.25e+100");
  EXPECT_EQ(python_float(5e-324), "5e-324");
  EXPECT_EQ(python_float(0.1 + 0.2), "0.30000000000000004");
  EXPECT_EQ(python_float(-INFINITY), "-inf");
  EXPECT_EQ(python_float(NAN), "nan");
}

TEST(PythonText, Repr) {
  EXPECT_EQ(python_repr("a"), "'a'");
  EXPECT_EQ(python_repr("it's"), "\"it's\"");
  EXPECT_EQ(python_repr("it's \"x\"\\"), "'it\\'s \"x\"\\\\'");
  EXPECT_EQ(python_repr("\n\t\r\x01\x7F"), "'\\n\\t\\r\\x01\\x7f'");
  EXPECT_EQ(python_repr("é\xC2\xA0\xE2\x80\xA8🙂"), "'é\\xa0\\u2028🙂'");
}

TEST(PythonLiteral, Lists) {
  const auto list = parse_python_list("['a', \"it's\", 'x\\n\\x41\\u00e9\\'', 2, -1.5, True, None, ]");
  ASSERT_TRUE(list);
  EXPECT_THAT(*list, ElementsAre("a", "it's", "x\nAé'", 2, -1.5, true, nullptr));
  EXPECT_EQ(python_str(OrderedJson(*list)), "['a', \"it's\", \"x\\nAé'\", 2, -1.5, True, None]");
  EXPECT_TRUE(parse_python_list(" [] ")->empty());
  for (const char* text : {"", "a", "[", "[1", "['a]", "[1] x", "[a]", "['\\ud800']", "[1 2]"})
    EXPECT_FALSE(parse_python_list(text)) << text;
}

TEST(PythonJson, BareWordsAndOrder) {
  const std::string text = R"({"b": NaN, "a": [Infinity, -Infinity, "NaN \" NaN"], "c": -1})";
  const OrderedJson value = read_python_json(text, "row");
  EXPECT_TRUE(std::isnan(value.at("b").get<double>()));
  EXPECT_EQ(value.at("a")[1].get<double>(), -INFINITY);
  EXPECT_EQ(value.at("a")[2], "NaN \" NaN");
  EXPECT_EQ(write_python_json(value), text);
}

TEST(PythonJson, WritesAsDumpsDoes) {
  const OrderedJson value = read_python_json(
      R"({"z": [], "a": {}, "t": "\u0001\u007f\n\/é\u2028", "f": 1e-5, "n": [1, {"x": null}]})", "row");
  EXPECT_EQ(write_python_json(value),
            "{\"z\": [], \"a\": {}, \"t\": \"\\u0001\x7F\\n/é\xE2\x80\xA8\", \"f\": 1e-05, \"n\": [1, {\"x\": null}]}");
  EXPECT_EQ(write_python_json(value.at("n"), 2), "[\n  1,\n  {\n    \"x\": null\n  }\n]");
  EXPECT_EQ(write_python_json(OrderedJson::array(), 2), "[]");
}

TEST(PythonJson, SaysWhatIsWrong) {
  const auto message = [](const std::string& text) {
    return message_of<datasets::DataError>([&] { read_python_json(text, "f: line 2"); });
  };
  EXPECT_EQ(message("{\"a\": }"), "f: line 2: byte 7: not JSON; expected one value in UTF-8");
  EXPECT_EQ(message("1e999"), "f: line 2: a number out of range; expected what a double can hold");
  EXPECT_THAT(message(std::string(300, '[')), HasSubstr("nested more than 256 deep"));
  EXPECT_THAT(message("[NaNa]"), HasSubstr("not JSON"));
}

TEST(PythonRandom, NumbersOfCPython) {
  PythonRandom zero(0), forty_two(42);
  EXPECT_EQ(zero.random(), 0.8444218515250481);
  EXPECT_EQ(zero.random(), 0.7579544029403025);
  EXPECT_EQ(forty_two.random(), 0.6394267984578837);
  for (int i = 0; i < 998; ++i) forty_two.random();
  EXPECT_EQ(forty_two.random(), 0.8554501933059546);
}

TEST(PythonRegex, FindAll) {
  const auto all = [](const std::string& pattern, const std::string& text) {
    std::string found;
    for (const auto& match : PythonRegex(pattern, "test").find_all(text)) {
      for (std::size_t i = 0; i < match.size(); ++i) found += (i == 0 ? "" : ",") + match[i];
      found += ";";
    }
    return found;
  };
  EXPECT_EQ(all("a+", "aa b a"), "aa;a;");
  EXPECT_EQ(all("(a)|(b)", "ab"), "a,;,b;");
  EXPECT_EQ(all("x*", "axb"), ";x;;;");
  EXPECT_EQ(all("|a", "a"), ";a;;");
  EXPECT_EQ(all(R"(\s)", "a\x1F b"), "\x1F; ;");
  EXPECT_EQ(all(R"([^\s]+)",
                "a\x1F"
                "b"),
            "a;b;");
  EXPECT_EQ(all(R"(a{,2}\Z)", "aaa"), "aa;;");
  EXPECT_EQ(all(R"([]a[]+)", "x]a["), "]a[;");
  EXPECT_EQ(all(R"(\u00e9)", "é"), "é;");
  EXPECT_EQ(all("(?i)É", "é"), "é;");
  EXPECT_EQ(PythonRegex("[,.]", "test").remove_all("1,000.0"), "10000");
  EXPECT_TRUE(PythonRegex::literal("A.B", true).found_in("xa.by"));
  EXPECT_FALSE(PythonRegex::literal("A.B", true).found_in("xacby"));
  EXPECT_THAT(message_of<datasets::DataError>([] { PythonRegex("(", "here"); }),
              HasSubstr("here: '(' is not a regular expression"));
}

}  // namespace
}  // namespace replayeval::tasks
