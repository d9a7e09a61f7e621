#include "reports/churn_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reports/markdown.h"
#include "reports/results_io.h"
#include "reports/table.h"
#include "tests/reports/sample_results.h"

namespace replayeval::reports {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

ChurnCheck mixer_check(const std::string& event, std::int64_t batch, std::int64_t differing) {
  return {"mixer", event, "replay_bfloat16", batch, 100, differing, differing > 0 ? 0.25 : 0.0, {}, {}, ""};
}

Results churn_results(std::int64_t differing = 0, double deviation = 0.001) {
  Results results = sample_results();
  results.workloads.clear();
  Workload& churn = results.workloads.emplace_back();
  churn.name = "served";
  churn.kind = "churn";
  churn.data = {{"prompt", "prefill"},
                {"sequences", 320},
                {"mixers", 1},
                {"events", {{{"batch", 255}, {"counts", {{"restore", 3}}}}, {{"batch", 256}}}}};
  churn.churn = {mixer_check("restore", 255, 0),
                 mixer_check("restore", 256, differing),
                 mixer_check("padded_rows", 256, 0),
                 {"model", "restore", "exact_float32", 256, 50, 49, deviation, 0.002, 0.0015, "exact_float32"}};
  return results;
}

TEST(ChurnTable, ComesBackFromJson) {
  const nlohmann::json written = to_json(churn_results(3));
  EXPECT_EQ(to_json(results_from_json(written)), written);
  const nlohmann::json& checks = written["workloads"][0]["churn"];
  EXPECT_EQ(checks[0]["holds"], true);
  EXPECT_EQ(checks[1]["holds"], false);
  EXPECT_FALSE(checks[1].contains("bound"));
  EXPECT_EQ(checks[3]["measured"], 0.0015);
  for (const auto& [key, wrong] : {std::pair("arm", "nobody"), {"level", "layer"}, {"event", "flood"}}) {
    nlohmann::json changed = written;
    changed["workloads"][0]["churn"][0][key] = wrong;
    EXPECT_THROW(results_from_json(changed), ResultsError) << key;
  }
}

TEST(ChurnTable, SaysWhatHolds) {
  const Results results = churn_results();
  EXPECT_EQ(broken_checks(results.workloads[0]), 0);
  EXPECT_EQ(churn_verdict(results.workloads[0]), "all 4 checks hold");
  const std::string table = summary_table(results, {});
  EXPECT_THAT(table, HasSubstr("300")) << "one row an arm and level";
  EXPECT_THAT(table, Not(HasSubstr("BROKEN")));
  EXPECT_THAT(table, HasSubstr("320 sequences in batches of 255, 256; 1 mixer\n"));
  EXPECT_THAT(table, Not(HasSubstr("greedy"))) << "nothing was generated";
  const std::string report = markdown_report(results, {});
  for (const char* part :
       {"### Churn\n\nPass: all 4 checks hold.", "| mixer | restore | `replay_bfloat16` | 255, 256 | 200 | yes |",
        "| no: 49 of 50 differ | 0.00100 | 0.00150 | 0.00200 | exact\\_float32 | holds |"})
    EXPECT_THAT(report, HasSubstr(part)) << report;
}

// A column that stands under another's name is not seen by tests of its values.
TEST(ChurnTable, ColumnsHaveTheNamesOfTheirValues) {
  const Results results = churn_results();
  const std::string table = churn_table(results.workloads[0]).render(200, false);
  EXPECT_EQ(table.substr(0, table.find('\n')),
            "level  arm              compared        bit-identical  max deviation   bound");
  EXPECT_THAT(table,
              HasSubstr("model  exact_float32          50  no: 49 of 50 differ         0.0010  0.0020  holds\n"));
  const std::string report = markdown_report(results, {});
  EXPECT_THAT(report,
              HasSubstr("| level | event | arm | batches | compared | bit-identical | max deviation | measured | "
                        "bound | of |  |\n"));
  EXPECT_THAT(report, HasSubstr("| model | restore | `exact_float32` | 256 | 50 | no: 49 of 50 differ | 0.00100 | "
                                "0.00150 | 0.00200 | exact\\_float32 | holds |"));
}

TEST(ChurnTable, SaysWhatIsBroken) {
  const Results bits = churn_results(2);
  EXPECT_EQ(broken_checks(bits.workloads[0]), 1);
  EXPECT_EQ(churn_verdict(bits.workloads[0]),
            "1 of 4 checks do not hold, the first: mixer, restore of arm 'replay_bfloat16' at batch 256");
  EXPECT_THAT(summary_table(bits, {}), HasSubstr("BROKEN"));
  EXPECT_THAT(markdown_report(bits, {}), HasSubstr("**Failed**"));
  EXPECT_THAT(markdown_report(bits, {}), HasSubstr("| no: 2 of 200 differ | 0.250 |"));
  const Results bound = churn_results(0, 0.0021);
  EXPECT_THAT(churn_verdict(bound.workloads[0]), HasSubstr("model, restore of arm 'exact_float32'"));
}

}  // namespace
}  // namespace replayeval::reports
