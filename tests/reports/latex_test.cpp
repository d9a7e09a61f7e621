#include <gmock/gmock.h>

#include <algorithm>

#include "reports/latex/markup.h"
#include "reports/latex/paper_tables.h"
#include "tests/reports/gate_results.h"

namespace replayeval::reports::latex {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(LatexText, EscapesWhatTexReads) {
  EXPECT_EQ(escaped("a_b & c% #1 {x} $y ~ ^ \\z"),
            "a\\_b \\& c\\% \\#1 \\{x\\} \\$y \\textasciitilde{} \\textasciicircum{} \\textbackslash{}z");
  EXPECT_EQ(escaped("ΔPPL – 2.00×"), "$\\Delta$PPL -- 2.00$\\times$");
  EXPECT_EQ(escaped("naïve 你"), "naïve U+4F60");
  EXPECT_EQ(escaped("two\nlines"), "two lines");
  EXPECT_EQ(text_of(code("a_b{}") + prose(" *so* **it** is")), "\\texttt{a\\_b\\{\\}} \\emph{so} \\textbf{it} is");
}

TEST(LatexText, WritesNumbersAsMathematicsDoes) {
  EXPECT_EQ(escaped("+0.40 [-0.25, +0.62]"), "$+$0.40 [$-$0.25, $+$0.62]");
  EXPECT_EQ(escaped("1.2e-06"), "$1.2\\times10^{-6}$");
  EXPECT_EQ(escaped("-3.5e+10"), "$-3.5\\times10^{10}$");
  EXPECT_EQ(escaped("exact-f32-again, 2026-11-30, v1e5x"), "exact-f32-again, 2026-11-30, v1e5x");
}

Table table_of(std::size_t columns, const std::string& cell) {
  Table table(std::vector<Text>(columns, Text("t")));
  table.add_row(std::vector<Text>(columns, Text(cell)));
  return table;
}

TEST(LatexFragment, TakesAsManyColumnsOfThePageAsItNeeds) {
  const std::string narrow = fragment({"name", "A caption.", table_of(3, "1.0")});
  EXPECT_THAT(narrow, HasSubstr("\\begin{table}\n"));
  EXPECT_THAT(narrow, HasSubstr("\\begin{tabular}{lrr}\n\\toprule\nt & t & t \\\\\n\\midrule\n1.0 & 1.0 & 1.0 \\\\\n"));
  EXPECT_THAT(narrow, HasSubstr("\\label{tab:name}"));
  EXPECT_THAT(fragment({"name", "", table_of(3, std::string(30, 'x'))}), HasSubstr("\\begin{table*}\n"));
}

TEST(LatexText, LetsLongWordsBreak) {
  EXPECT_EQ(escaped("replay-bf16"), "replay-bf16");
  EXPECT_EQ(escaped("see replay-state_bfloat16 now"), "see replay-\\allowbreak{}state\\_\\allowbreak{}bfloat16 now");
  EXPECT_EQ(text_of(code("abcdefghijklmnopqrstuvwxyz")),
            "\\texttt{abcdefghijkl\\allowbreak{}mnopqrstuvwx\\allowbreak{}yz}");
}

TEST(LatexFragment, BreaksLongNamesAndLongTables) {
  Table table({"arm", "value"});
  for (std::size_t i = 0; i < 30; ++i) table.add_row({code(std::string(40, 'n')), "1"});
  const std::string text = fragment({"name", "A caption.", table});  // two lines a row: 60
  EXPECT_THAT(text, HasSubstr("\\begin{tabular}{p{16em}r}"));
  EXPECT_THAT(text, HasSubstr("\n\\raggedright \\texttt{n"));
  EXPECT_THAT(text, HasSubstr("\\addtocounter{table}{-1}\n\\caption{(continued, 2 of 2)}"));
  EXPECT_THAT(text, Not(HasSubstr("of 3)")));
  const auto count = [&](const std::string& part) {
    std::size_t found = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
    return found;
  };
  EXPECT_EQ(count("\\label{"), 1U);
  EXPECT_EQ(count("\\toprule"), 2U);
  EXPECT_EQ(count("& 1 \\\\"), 30U) << "every row, once";
}

TEST(LatexFragment, HasACsvTwin) {
  Table table({"arm", "value"});
  table.add_row({code("a,b"), "say \"1\""});
  EXPECT_EQ(csv(table), "arm,value\r\n\"a,b\",\"say \"\"1\"\"\"\r\n");
}

const PaperTable& named(const std::vector<PaperTable>& tables, const std::string& name) {
  return *std::find_if(tables.begin(), tables.end(), [&](const PaperTable& table) { return table.name == name; });
}

TEST(PaperTables, SayHowMuchWasComparedAndWhetherThereWasAControl) {
  Results results = gate_results();  // with a control
  const std::string quality = results.workloads.front().name + "-quality";
  const std::vector<PaperTable> with = paper_tables(results);
  EXPECT_THAT(named(with, quality).caption, HasSubstr("24,000 tokens scored"));
  EXPECT_THAT(named(with, quality).caption, HasSubstr("A/A: an arm equal to it in all but its name"));
  EXPECT_THAT(csv(named(with, quality).table), HasSubstr("exact_float32_again (A/A)"));
  for (nlohmann::json& arm : results.arms)
    if (arm.at("name") == "exact_float32_again") arm["state_storage"]["overflow"] = "saturate";
  const std::vector<PaperTable> without = paper_tables(results);
  EXPECT_THAT(named(without, quality).caption, HasSubstr("no A/A control was run"));
  EXPECT_THAT(csv(named(without, quality).table), Not(HasSubstr("(A/A)")));
}

// A table's name becomes a file's: a workload's must not lead it out of the folder.
TEST(PaperTables, AreNamedByWhatAFileMayBeCalled) {
  Results results = gate_results();
  results.workloads.front().name = "../../evil & <co>";
  const std::vector<PaperTable> tables = paper_tables(results);
  ASSERT_FALSE(tables.empty());
  for (const PaperTable& table : tables) EXPECT_EQ(table.name.find_first_of("./&<> "), std::string::npos) << table.name;
}

}  // namespace
}  // namespace replayeval::reports::latex
