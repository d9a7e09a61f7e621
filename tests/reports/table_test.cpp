#include "reports/table.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "reports/text_table.h"
#include "tests/reports/sample_results.h"

namespace replayeval::reports {
namespace {

using testing::HasSubstr;
using testing::Not;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::string line_with(const std::string& text, const std::string& part) {
  for (const std::string& line : lines_of(text)) {
    if (line.find(part) != std::string::npos) return line;
  }
  return "";
}

std::size_t widest(const std::string& text) {
  std::size_t widest = 0;
  for (const std::string& line : lines_of(text)) widest = std::max(widest, display_width(line));
  return widest;
}

Results with_long_names() {
  Results results = sample_results();
  const std::string old_name = "replay_float32_bfloat16";
  const std::string new_name = "replay_with_a_float32_state_and_a_bfloat16_ring_of_sixteen_inputs";
  for (nlohmann::json& arm : results.arms) {
    if (arm["name"] == old_name) arm["name"] = new_name;
  }
  Workload& workload = results.workloads[0];
  workload.arms[new_name] = workload.arms.extract(old_name).mapped();
  workload.deltas[new_name] = workload.deltas.extract(old_name).mapped();
  workload.divergence[new_name] = workload.divergence.extract(old_name).mapped();
  return results;
}

TEST(SummaryTable, ShowsWhatWasComparedOnWhat) {
  const std::string table = summary_table(sample_results(), {});
  EXPECT_THAT(table, HasSubstr("Checkpoint checkpoints/tiny (nemotron_h); baseline: exact_float32"));
  EXPECT_THAT(table, HasSubstr("anarchism, wordnet: 24,000 tokens scored in 37 documents"));
  EXPECT_THAT(table, HasSubstr("context 1,024, stride 512 · teacher_forced · prompt: decode"));
}

TEST(SummaryTable, ARowHasItsNumbers) {
  const std::string row = line_with(summary_table(sample_results(), {}), "exact_bfloat16 ");
  for (const char* part : {"12.2130", "+0.250", "[+0.210, +0.290]", "3.1e-04", "99.69"})
    EXPECT_THAT(row, HasSubstr(part));
  const std::string small = line_with(summary_table(sample_results(), {}), "replay_float32 ");
  EXPECT_THAT(small, HasSubstr("+1.2e-06"));
}

TEST(SummaryTable, WorstLayerAndSpeed) {
  const std::string table = summary_table(sample_results(), {});
  const std::string costs = table.substr(table.find("State error of the worst layer"));
  const std::string row = line_with(costs, "replay_bfloat16 ");
  EXPECT_THAT(row, HasSubstr("0.0042")) << "layer 4 at 1024 tokens, the largest of the four";
  EXPECT_THAT(row, HasSubstr("2,400"));
  EXPECT_THAT(row, HasSubstr("1.50×"));
  EXPECT_THAT(row, HasSubstr("5.00 s"));
}

TEST(SummaryTable, SaysThatItsSpeedIsNoDecodeSpeed) {
  const std::string table = summary_table(sample_results(), {.width = 200});
  EXPECT_THAT(table, HasSubstr("and the speed of this evaluation"));
  EXPECT_THAT(table, HasSubstr("(decode speed: `replayeval bench model`)"));
}

TEST(SummaryTable, ShowsOnlyTheStateErrorsThatWereMeasured) {
  Results results = sample_results();
  std::erase_if(results.workloads[0].state_errors, [](const StateError& error) { return error.depth == "gold"; });
  std::string table = summary_table(results, {});
  EXPECT_THAT(table, Not(HasSubstr("vs gold")));
  EXPECT_THAT(line_with(table, "propagated"), HasSubstr("local"));
  results.workloads[0].state_errors.clear();
  table = summary_table(results, {});
  for (const char* word : {"State error", "vs gold", "propagated", "local", "–"})
    EXPECT_THAT(table, Not(HasSubstr(word)));
  EXPECT_THAT(table, HasSubstr("The speed of this evaluation"));
  EXPECT_THAT(line_with(table, "1.50×"), HasSubstr("2,400"));
}

TEST(SummaryTable, SpeedIsRoundedNotCut) {
  Results results = sample_results();
  results.workloads[0].arms["exact_float32"].tokens_per_second = 1234.7;
  EXPECT_THAT(summary_table(results, {.width = 120}), HasSubstr("1,235"));
}

TEST(SummaryTable, EveryComparedArmHasAVerdict) {
  const std::string table = summary_table(sample_results(), {});
  EXPECT_THAT(table, HasSubstr("• exact_float32_again (exact, float32 state): identical to the baseline"));
  EXPECT_THAT(
      table,
      HasSubstr("• replay_float32 (replay, L = 16, float32 state, float32 ring of inputs): no measurable change"));
  EXPECT_THAT(table, Not(HasSubstr("• exact_float32 (")));
}

TEST(SummaryTable, FitsTheWidth) {
  EXPECT_LE(widest(summary_table(sample_results(), {})), 100U);
  EXPECT_LE(widest(summary_table(with_long_names(), {})), 100U);
  const std::string narrow = summary_table(sample_results(), {.colour = false, .width = 72});
  EXPECT_LE(widest(narrow), 72U);
  EXPECT_THAT(line_with(narrow, "exact_bfloat16 "), HasSubstr("+0.250")) << "the delta is the last to go";
}

TEST(SummaryTable, ColoursOnlyWhenAsked) {
  EXPECT_THAT(summary_table(sample_results(), {}), Not(HasSubstr("\x1b[")));
  const std::string coloured = summary_table(sample_results(), {.colour = true});
  EXPECT_THAT(line_with(coloured, "+1.30"), HasSubstr("\x1b[31m")) << "a rise is red";
  std::string plain;
  for (std::size_t i = 0; i < coloured.size(); ++i) {
    if (coloured[i] != '\x1b') {
      plain += coloured[i];
    } else {
      i = coloured.find('m', i);
    }
  }
  EXPECT_EQ(plain, summary_table(sample_results(), {})) << "colour must not move a column";
}

TEST(SummaryTable, FilesGetNoColour) {
  std::FILE* file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  EXPECT_FALSE(table_options_for(file).colour);
  EXPECT_EQ(table_options_for(file).width, 100);
  std::fclose(file);
}

// A pseudo-terminal of 90 columns.
TEST(SummaryTable, TerminalsGetColourUnlessNoColorIsSet) {
  const int controller = ::posix_openpt(O_RDWR | O_NOCTTY);
  if (controller < 0) GTEST_SKIP() << "no pseudo-terminals here (a container without /dev/ptmx)";
  ASSERT_EQ(::grantpt(controller), 0);
  ASSERT_EQ(::unlockpt(controller), 0);
  const winsize size{.ws_row = 24, .ws_col = 90, .ws_xpixel = 0, .ws_ypixel = 0};
  ASSERT_EQ(::ioctl(controller, TIOCSWINSZ, &size), 0);
  const int terminal = ::open(::ptsname(controller), O_RDWR | O_NOCTTY);
  std::FILE* stream = ::fdopen(terminal, "w");
  ASSERT_NE(stream, nullptr);
  ::unsetenv("NO_COLOR");
  EXPECT_TRUE(table_options_for(stream).colour);
  EXPECT_EQ(table_options_for(stream).width, 90);
  ::setenv("NO_COLOR", "1", 1);
  EXPECT_FALSE(table_options_for(stream).colour);
  ::setenv("NO_COLOR", "", 1);  // no-color.org: an empty value does not count
  EXPECT_TRUE(table_options_for(stream).colour);
  ::unsetenv("NO_COLOR");
  std::fclose(stream);
  ::close(controller);
}

TEST(SummaryTable, StoredInfinitiesAreShouted) {
  Results results = sample_results();
  results.workloads[0].storage_counts[0].arm = "replay_bfloat16";
  results.workloads[0].storage_counts[0].non_finite = 12345;
  EXPECT_THAT(summary_table(results, {}), HasSubstr("12,345 non-finite states were stored"));
}

TEST(SummaryTable, ResultsWithoutMeasurements) {
  Results results = sample_results();
  Workload bare;
  bare.name = "bare";
  bare.kind = "perplexity";
  bare.data = nlohmann::json::object();
  results.workloads = {bare};
  EXPECT_THAT(line_with(summary_table(results, {}), "replay_bfloat16 "), HasSubstr("–"));
  results.workloads.clear();
  EXPECT_THAT(summary_table(results, {}), HasSubstr("No workload has finished yet"));
}

TEST(TextTable, AlignsByWhatIsSeenNotByBytes) {
  TextTable table({{"name", Align::left, 0}, {"n", Align::right, 0}});
  table.add_row({{"Δé"}, {"1"}});
  table.add_row({{"abcdef"}, {"22"}});
  EXPECT_EQ(table.render(100, false), "name     n\nΔé       1\nabcdef  22\n");
}

TEST(TextTable, LinesEndWithoutSpaces) {
  TextTable table({{"name", Align::left, 0}, {"n", Align::right, 0}});
  table.add_row({{"a"}, {""}});
  EXPECT_EQ(table.render(100, false), "name  n\na\n");
}

TEST(TextTable, DropsTheLeastImportantColumnsFirst) {
  TextTable table(
      {{"name", Align::left, 0}, {"aaaa", Align::right, 2}, {"bbbb", Align::right, 1}, {"cccc", Align::right, 0}});
  table.add_row({{"x"}, {"1"}, {"2"}, {"3"}});
  EXPECT_THAT(table.render(22, false), HasSubstr("bbbb"));
  EXPECT_THAT(table.render(21, false), testing::AllOf(HasSubstr("aaaa"), Not(HasSubstr("bbbb"))));
  EXPECT_THAT(table.render(10, false), testing::AllOf(HasSubstr("cccc"), Not(HasSubstr("aaaa"))));
  EXPECT_THROW(table.add_row({{"too few"}}), std::invalid_argument);
}

TEST(TextTable, ShortensLongNames) {
  TextTable table({{"name", Align::left, 0}, {"n", Align::right, 0}});
  table.add_row({{"a_name_of_twenty_letters"}, {"1"}});
  EXPECT_EQ(lines_of(table.render(18, false))[1], "a_name_of_twen…  1");
}

TEST(Wrapped, KeepsIntervalsAndPercentsWhole) {
  const std::string text = wrapped("rises: 0.25 % [+0.210, +0.290] (95 %)", 20, 4);
  EXPECT_EQ(text, "rises: 0.25 %\n    [+0.210, +0.290]\n    (95 %)\n");
  EXPECT_EQ(wrapped("a b (95 %)", 8, 2), "a b\n  (95 %)\n");
}

}  // namespace
}  // namespace replayeval::reports
