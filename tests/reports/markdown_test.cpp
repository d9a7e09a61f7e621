#include "reports/markdown.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "reports/document.h"
#include "reports/gnuplot.h"
#include "reports/markdown_blocks.h"
#include "tests/reports/sample_results.h"
#include "tests/temporary_folder.h"

namespace replayeval::reports {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::string read_text(const std::filesystem::path& file) {
  std::ostringstream text;
  text << std::ifstream(file, std::ios::binary).rdbuf();
  return text.str();
}

std::string report() { return markdown_report(sample_results(), {}); }

std::string section(const std::string& title) {
  const std::string text = report();
  const std::size_t begin = text.find("### " + title);
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find("\n##", begin) - begin);
}

// The row of the first table whose first cell is `name`.
std::string row(const std::string& text, const std::string& name) {
  const std::size_t begin = text.find("| " + name + " |");
  return begin == std::string::npos ? "" : text.substr(begin, text.find('\n', begin) - begin);
}

TEST(MarkdownReport, SummaryRow) {
  const std::string found = row(section("Summary"), "`exact_bfloat16`");
  for (const char* part :
       {"| 12.2130 |", "| +0.250 |", "| [+0.210, +0.290] |", "| 3.10e-04 |", "| 99.69 |", "| 0.0190 |"}) {
    EXPECT_THAT(found, HasSubstr(part));
  }
}

TEST(MarkdownReport, EveryDeltaHasItsMethod) {
  const std::string text = section("Paired deltas");
  EXPECT_THAT(text,
              HasSubstr("| `exact_bfloat16` | `mean_log_likelihood_t` | -0.00250 | [-0.00294, -0.00206] | 95 % |"));
  EXPECT_THAT(text, HasSubstr("paired t over 37 documents"));
  EXPECT_THAT(text, HasSubstr("paired bootstrap over 37 documents"));
}

TEST(MarkdownReport, DivergenceHasAColumnAnArm) {
  const std::string text = section("Divergence");
  EXPECT_THAT(row(text, "`kl_p99.9`"), HasSubstr("| 0 | 0.0124 | 2.00e-10 | 8.00e-04 | 0.0360 |"));
}

TEST(MarkdownReport, PositionsInMillionths) {
  EXPECT_THAT(row(section("By position"), "256 – 511"), HasSubstr("-3750 [-4150, -3350]"));
}

TEST(MarkdownReport, ThreeDepthsOfStateError) {
  const std::string text = section("State error");
  EXPECT_THAT(text, HasSubstr("Local: "));
  EXPECT_THAT(text, HasSubstr("Propagated: "));
  EXPECT_THAT(text, HasSubstr("Against gold: "));
  EXPECT_THAT(text, HasSubstr("| 4 | 1,024 | 2.10e-07 (2.7e-07; y 1.5e-07) |"));
}

TEST(MarkdownReport, OnlyOddStoragesAreListed) {
  const std::string text = section("Stored states");
  EXPECT_THAT(text, HasSubstr("| `exact_bfloat16` | 4 | 0 | 1,234 | 0 |"));
  EXPECT_THAT(text, Not(HasSubstr("replay")));
}

TEST(MarkdownReport, SpeedAndKernelTimes) {
  const std::string text = section("Speed");
  EXPECT_THAT(row(text, "`replay_bfloat16`"), HasSubstr("| 5.00 s | 2400 | 1.500× | 128.0 KiB | 8.5 KiB |"));
  EXPECT_THAT(row(text, "`dense`"), HasSubstr("| 30.0 s / 720 |"));
  EXPECT_THAT(text, HasSubstr("not of serving"));
}

TEST(MarkdownReport, ProvenanceNamesEverything) {
  const std::string text = report();
  for (const std::string& part :
       {std::string(64, 'a'), std::string(64, 'b'), std::string(64, 'c'), std::string("0123456789ab"),
        std::string("\"seed\": 0"), std::string("compute\\_dtype")}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
}

TEST(MarkdownReport, EveryTableIsRectangular) {
  std::istringstream stream(report());
  std::size_t bars = 0;
  for (std::string line; std::getline(stream, line);) {
    if (!line.starts_with("|")) {
      bars = 0;
      continue;
    }
    std::size_t count = 0;
    for (std::size_t i = 0; i < line.size(); ++i) count += line[i] == '|' && (i == 0 || line[i - 1] != '\\') ? 1 : 0;
    if (bars == 0) bars = count;
    EXPECT_EQ(count, bars) << line;
  }
}

TEST(MarkdownReport, NamesCannotBreakTheTables) {
  Results results = sample_results();
  results.checkpoint["path"] = "a|b`c\n| d";
  results.config["name"] = "*loud*";
  const std::string text = markdown_report(results, {});
  EXPECT_THAT(text, HasSubstr("# ReplayEval: \\*loud\\*"));
  EXPECT_THAT(row(text, "path"), HasSubstr("a\\|b`c \\| d"));
}

TEST(MarkdownReport, SectionsWithoutContentAreLeftOut) {
  Results results = sample_results();
  results.workloads[0].state_errors.clear();
  results.workloads[0].positions.clear();
  const std::string text = markdown_report(results, {});
  EXPECT_THAT(text, Not(HasSubstr("### State error")));
  EXPECT_THAT(text, Not(HasSubstr("### By position")));
}

TEST(WriteMarkdownReport, LinksLeadToFigures) {
  const TemporaryFolder folder;
  write_markdown_report(sample_results(), folder.path() / "new" / "result");
  const std::string text = read_text(folder.path() / "new" / "result" / "report.md");
  EXPECT_THAT(text, Not(HasSubstr("No figures")));
  int links = 0;
  for (std::size_t at = text.find("]("); at != std::string::npos; at = text.find("](", at + 1)) {
    const std::string link = text.substr(at + 2, text.find(')', at) - at - 2);
    EXPECT_THAT(read_text(folder.path() / "new" / "result" / link), HasSubstr("<svg")) << link;
    ++links;
  }
  EXPECT_EQ(links, 4) << "perplexity by position, and state error at three depths";
}

TEST(WriteMarkdownReport, UnwritableFolder) {
  const TemporaryFolder folder;
  folder.write("file", "");
  EXPECT_THAT(message_of([&] { write_markdown_report(sample_results(), folder.path() / "file" / "sub"); }),
              HasSubstr("file/sub: cannot be made"));
}

TEST(Figures, ShowTheNumbers) {
  const TemporaryFolder folder;
  const Figures figures = draw_figures(sample_results(), folder.path());
  EXPECT_EQ(figures.note, "");
  ASSERT_EQ(figures.drawn.size(), 4U);
  const std::string data = read_text(folder.path() / "figures" / "heldout-state_error_gold.dat");
  EXPECT_THAT(data, HasSubstr("128 0.00105\n1024 0.0042\n")) << "the worst layer of replay_bfloat16";
  EXPECT_THAT(read_text(folder.path() / "figures" / "heldout-state_error_gold.svg"), HasSubstr("replay_bfloat16"));
  EXPECT_THAT(read_text(folder.path() / "figures" / "heldout-state_error_gold.pdf"), StartsWith("%PDF"));
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "figures" / "heldout-state_error_gold.pdf.partial"));
}

TEST(Figures, PerplexityRisesWhereTheLikelihoodFalls) {
  Results results = sample_results();
  for (PositionBucket& bucket : results.workloads[0].positions) {
    bucket.delta = {{"replay_bfloat16",
                     {.value = -0.01, .low = -0.02, .high = 0.005, .p_value = {}, .confidence = 0.95, .method = "t"}}};
  }
  const TemporaryFolder folder;
  draw_figures(results, folder.path());
  std::istringstream data(read_text(folder.path() / "figures" / "heldout-perplexity_by_position.dat"));
  std::string comment;
  std::getline(data, comment);
  double place = 0.0;
  double value = 0.0;
  double low = 0.0;
  double high = 0.0;
  data >> place >> value >> low >> high;
  EXPECT_NEAR(value, 1.00502, 1e-4);  // 100 (e^0.01 - 1)
  EXPECT_NEAR(low, -0.49875, 1e-4);   // 100 (e^-0.005 - 1)
  EXPECT_NEAR(high, 2.02013, 1e-4);   // 100 (e^0.02 - 1)
}

TEST(Figures, MissingGnuplotIsANoteNotAFailure) {
  const std::string path = std::getenv("PATH");
  const TemporaryFolder folder;
  ::setenv("PATH", folder.path().c_str(), 1);
  const Figures figures = draw_figures(sample_results(), folder.path());
  ::setenv("PATH", path.c_str(), 1);
  EXPECT_TRUE(figures.drawn.empty());
  EXPECT_THAT(figures.note, HasSubstr("gnuplot is not installed"));
  EXPECT_THAT(markdown_report(sample_results(), figures), HasSubstr("No figures: gnuplot is not installed"));
}

TEST(Figures, GnuplotsComplaintsArePassedOn) {
  const TemporaryFolder folder;
  EXPECT_THAT(run_gnuplot(folder.write("bad.gp", "plot sin(\n")), HasSubstr("gnuplot failed on bad.gp: "));
  EXPECT_EQ(run_gnuplot(folder.write("good.gp", "x = 1\n")), "");
}

std::string as_markdown(const Text& text) { return markdown::text_of(text); }

TEST(MarkdownBlocks, BracketsOfIntervalsStayAndLinksDoNot) {
  EXPECT_EQ(as_markdown("+1 [-2, +3] (95 %)"), "+1 [-2, +3] (95 %)");
  EXPECT_EQ(as_markdown("[click](http://somewhere)"), "\\[click\\](http://somewhere)");
  EXPECT_EQ(as_markdown("[a]: b [[c]] d] ["), "\\[a\\]: b \\[[c]\\] d\\] \\[");
}

TEST(Prose, MarksAreReadOnlyFromOurOwnSentences) {
  EXPECT_EQ(as_markdown(prose("`kl_*`: *nats*, **bold**")), "`kl_*`: *nats*, **bold**");
  EXPECT_EQ(as_markdown("*a* `b`"), "\\*a\\* \\`b\\`");
  EXPECT_EQ(prose("one *two* three").plain(), "one two three");
  EXPECT_THROW(prose("an *open mark"), std::invalid_argument);
}

TEST(Table, RefusesRowsOfAnotherLength) {
  Table table({"a", "b"});
  EXPECT_THROW(table.add_row({"1"}), std::invalid_argument);
}

}  // namespace
}  // namespace replayeval::reports
