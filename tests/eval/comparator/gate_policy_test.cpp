#include "eval/comparator/gate_policy.h"

#include <gmock/gmock.h>

#include <string>

#include "eval/comparator/run_config.h"

namespace replayeval {
namespace {

using testing::HasSubstr;
using testing::StartsWith;
namespace gate = reports::gate;

gate::Rule rule(const std::string& text) {
  return parse_gate_policy("rules:\n  - {name: a, " + text + "}\n", "p.yaml").rules.at(0);
}

std::string refusal(const std::string& yaml) {
  try {
    parse_gate_policy(yaml, "p.yaml");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

std::string rule_refusal(const std::string& text) { return refusal("rules:\n  - {name: a, " + text + "}\n"); }

TEST(GatePolicy, DefaultsAreStrict) {
  const gate::Policy policy =
      parse_gate_policy("rules:\n  - {name: a, metric: delta.acc, at_least: -0.01}\n", "dir/tasks.yaml");
  EXPECT_EQ(policy.name, "tasks");
  const gate::Rule& made = policy.rules.at(0);
  EXPECT_EQ(made.inconclusive, gate::OnInconclusive::fail);
  EXPECT_EQ(made.compare, gate::Compare::interval);
  EXPECT_EQ(made.against, gate::Against::baseline);
  EXPECT_EQ(made.pool, gate::Pool::each);
  EXPECT_EQ(made.confidence, 0.95);
  EXPECT_EQ(made.arms, std::vector<std::string>{"*"});
  EXPECT_EQ(made.margin.at_least, -0.01);
  EXPECT_FALSE(made.margin.at_most);
  EXPECT_EQ(made.place, "dir/tasks.yaml:2:5");
}

TEST(GatePolicy, EveryKeyArrives) {
  const gate::Policy policy = parse_gate_policy(
      "name: x\nconfidence: 0.9\ninconclusive: warn\nrules:\n"
      "  - {name: a, metric: delta.acc, arms: [b, 'c*'], workloads: d, within: 1 %, pool: questions}\n"
      "  - {name: b, metric: speed.tokens_per_second, at_least: -5%, against: release, uncertainty: 2 %, confidence: "
      "0.99, inconclusive: pass}\n"
      "  - {name: c, metric: divergence.kl_max, at_most: 1e-3, compare: value}\n",
      "p.yaml");
  EXPECT_EQ(policy.name, "x");
  const gate::Rule &a = policy.rules.at(0), &b = policy.rules.at(1), &c = policy.rules.at(2);
  EXPECT_EQ(a.arms, (std::vector<std::string>{"b", "c*"}));
  EXPECT_EQ(a.workloads, std::vector<std::string>{"d"});
  EXPECT_EQ(a.margin.at_least, -0.01);
  EXPECT_EQ(a.margin.at_most, 0.01);
  EXPECT_EQ(a.pool, gate::Pool::questions);
  EXPECT_EQ(a.inconclusive, gate::OnInconclusive::warn);
  EXPECT_EQ(a.confidence, 0.9);
  EXPECT_EQ(b.margin.at_least, -0.05);
  EXPECT_EQ(b.against, gate::Against::release);
  EXPECT_EQ(b.uncertainty, 0.02);
  EXPECT_EQ(b.confidence, 0.99);
  EXPECT_EQ(b.inconclusive, gate::OnInconclusive::pass);
  EXPECT_EQ(c.margin.at_most, 1e-3);
  EXPECT_EQ(c.compare, gate::Compare::value);
}

TEST(GatePolicy, CountsAreComparedByValue) {
  EXPECT_EQ(rule("metric: storage.non_finite, at_most: 0").compare, gate::Compare::value);
  EXPECT_THAT(rule_refusal("metric: churn.broken, at_most: 0, compare: interval"),
              HasSubstr("key 'compare': expected 'value': churn.broken has no interval"));
}

// Units that the metric does not have, and margins that every run or none holds.
TEST(GatePolicy, RefusesMarginsOfAnotherUnit) {
  for (const char* percent :
       {"metric: speed.tokens_per_second, uncertainty: 1 %, at_least: 90 %", "metric: delta.length, at_most: 1 %",
        "metric: storage.non_finite, at_most: 5 %", "metric: bytes.state, at_most: 101 %",
        "metric: divergence.kl_mean, within: 1 %", "metric: churn.broken, at_most: 1 %"})
    EXPECT_THAT(rule_refusal(percent), HasSubstr("expected a plain number, as ")) << percent;
  EXPECT_THAT(
      rule_refusal("metric: bytes.state, at_most: 101 %"),
      StartsWith("p.yaml:2:45: key 'at_most': expected a plain number, as bytes.state is no share, found '101 %'"));
  EXPECT_THAT(rule_refusal("metric: delta.perplexity_relative, within: 10"),
              HasSubstr("key 'within': expected a fraction from -1 to 1, or a number in percent such as '10 %', found "
                        "'10'"));
  EXPECT_THAT(rule_refusal("metric: divergence.same_top1, at_least: 0.995 %"),
              HasSubstr("expected a share that could be missed, such as '99.5 %' or 0.995, found '0.995 %'"));
  EXPECT_THAT(rule_refusal("metric: divergence.same_top1, at_most: 99.5"), HasSubstr("expected 0 to 1, or 0 to 100 %"));
  EXPECT_THAT(rule_refusal("metric: arm.acc, at_least: -0.1"), HasSubstr("expected 0 to 1, or 0 to 100 %"));
  for (const char* points : {"metric: delta.acc, at_least: -3", "metric: 'delta.accuracy/*', at_least: -101 %",
                             "metric: divergence.same_top1, within: 2, against: release"})
    EXPECT_THAT(rule_refusal(points), HasSubstr("expected -1 to 1, or -100 to 100 %, as")) << points;
  EXPECT_THAT(rule_refusal("metric: speed.over_baseline, uncertainty: 1 %, at_least: -10 %"),
              HasSubstr("expected 0 or more, as speed.over_baseline is a ratio"));
  // What means something stays.
  EXPECT_EQ(
      rule("metric: speed.tokens_per_second, uncertainty: 1 %, at_least: -10 %, against: release").margin.at_least,
      -0.1);
  EXPECT_EQ(rule("metric: bytes.state, at_most: 0 %, against: release").margin.at_most, 0.0);
  EXPECT_EQ(rule("metric: delta.perplexity_relative, at_most: 150 %").margin.at_most, 1.5);
  EXPECT_EQ(rule("metric: divergence.same_top1, at_least: 99.5 %").margin.at_least, 0.995);
  EXPECT_EQ(rule("metric: divergence.same_top1, at_least: 1").margin.at_least, 1.0);
  EXPECT_EQ(rule("metric: delta.looped, at_most: 2 %").margin.at_most, 0.02);
  EXPECT_EQ(rule("metric: delta.length, within: 20").margin.at_most, 20.0);
  EXPECT_EQ(rule("metric: state_error.gold, at_most: 1.0e-5").margin.at_most, 1e-5);
}

TEST(GatePolicy, RefusesListsThatMatchNothing) {
  for (const char* key : {"arms", "workloads"})
    EXPECT_THAT(rule_refusal(std::string("metric: delta.acc, at_most: 1, ") + key + ": []"),
                HasSubstr(std::string("key '") + key + "': expected a name or glob, or a list of them; found none"));
}

TEST(GatePolicy, AStoredArmBelongsToStoredRules) {
  EXPECT_EQ(rule("metric: stored_delta.perplexity_relative, at_most: 1 %, stored_arm: 'e*'").stored_arm, "e*");
  EXPECT_THAT(rule_refusal("metric: delta.acc, at_most: 1 %, stored_arm: x"),
              HasSubstr("key 'stored_arm': expected only with stored_delta and stored_divergence"));
}

TEST(GatePolicy, RefusesWhatIsNoPolicy) {
  EXPECT_THAT(refusal(""), HasSubstr("p.yaml: empty; expected a policy with rules"));
  EXPECT_THAT(refusal("name: x\n"), HasSubstr("key 'rules': missing from a gate's policy"));
  EXPECT_THAT(refusal("rules: []\n"), HasSubstr("p.yaml:1:8: key 'rules': expected a list of rules, at least one, "
                                                "found an empty list"));
  EXPECT_THAT(refusal("rules: [a\n"), StartsWith("p.yaml:"));
  EXPECT_THAT(refusal("rules:\n  - {name: a, metric: delta.acc, at_mots: 1}\n"),
              HasSubstr("p.yaml:2:34: key 'at_mots': unknown in a rule; expected one of name, metric, workloads"));
  EXPECT_THAT(refusal("rules:\n  - &r {name: a, metric: delta.acc, at_most: 1}\n  - *r\n"),
              HasSubstr("expected another name than 'a'"));
}

TEST(GatePolicy, NamesAreOfOneLine) {
  for (const char* bad : {"\"a\\npass: all 9 judgements pass\"", "\"a\\x1b[2J\"", "'   '", "\"\\t\""}) {
    const std::string expected = "key 'name': expected a name of one line without control characters";
    EXPECT_THAT(refusal(std::string("rules:\n  - {metric: delta.acc, at_most: 1, name: ") + bad + "}\n"),
                HasSubstr(expected));
    EXPECT_THAT(refusal(std::string("name: ") + bad + "\nrules:\n  - {metric: delta.acc, at_most: 1, name: a}\n"),
                HasSubstr(expected));
  }
  EXPECT_EQ(parse_gate_policy("name: Größe & <x>\nrules:\n  - {metric: delta.acc, at_most: 1, name: ΔPPL}\n", "p.yaml")
                .rules.at(0)
                .name,
            "ΔPPL");
}

TEST(GatePolicy, RefusesBytesThatAreNoUtf8) {
  EXPECT_THAT(refusal("name: Gr\xf6\xdf"
                      "e\n"),
              HasSubstr("p.yaml: byte 8: found f6"));
}

TEST(GatePolicy, RefusesRulesThatCannotBeMeant) {
  EXPECT_THAT(rule_refusal("metric: delta.acc"), HasSubstr("the rule has no margin; expected at_most, at_least or"));
  EXPECT_THAT(rule_refusal("metric: acc, at_least: 0"),
              HasSubstr("p.yaml:2:23: key 'metric': expected GROUP.NAME with a group of delta, divergence, "));
  EXPECT_THAT(rule_refusal("metric: speed.token, at_least: 0"),
              HasSubstr("expected one of speed.tokens_per_second, speed.over_baseline; found 'speed.token'"));
  EXPECT_THAT(rule_refusal("metric: delta.acc, at_least: 1, at_most: 0"),
              HasSubstr("key 'at_least': expected at most"));
  EXPECT_THAT(rule_refusal("metric: delta.acc, within: -1"), HasSubstr("key 'within': expected 0 or more"));
  EXPECT_THAT(rule_refusal("metric: delta.acc, within: 1, at_most: 1"), HasSubstr("without at_most and at_least"));
  for (const char* bad : {"nan", "inf", "x", "'%'", "1e999", "1 % %"})
    EXPECT_THAT(rule_refusal(std::string("metric: delta.acc, at_most: ") + bad),
                HasSubstr("key 'at_most': expected a number, or one in percent such as '0.1 %'"))
        << bad;
  EXPECT_THAT(rule_refusal("metric: delta.acc, at_most: 1, confidence: 0.2"), HasSubstr("between 0.5 and 1"));
  EXPECT_THAT(rule_refusal("metric: delta.acc, at_most: 1, inconclusive: maybe"), HasSubstr("pass, warn, fail"));
  EXPECT_THAT(rule_refusal("metric: speed.over_baseline, at_least: 1"),
              HasSubstr("key 'uncertainty': missing from a rule of speed"));
  EXPECT_THAT(rule_refusal("metric: delta.acc, at_least: 1, uncertainty: 1 %"), HasSubstr("expected only with speed"));
  EXPECT_THAT(rule_refusal("metric: divergence.kl_mean, at_most: 1, pool: tasks"), HasSubstr("key 'pool'"));
}

}  // namespace
}  // namespace replayeval
