// Runs without a checkpoint's weights, text or tokenizer, and runs on several GPUs, as a config says them.
#include <gtest/gtest.h>

#include <fstream>

#include "eval/comparator/run_config.h"
#include "tests/eval/checkpoint/expect_error.h"
#include "tests/temporary_folder.h"

namespace replayeval {
namespace {

std::string config_with(const std::string& top, const std::string& source) {
  return "name: small\ncheckpoint: model\n" + top + "arms:\n  - {name: exact, executor: exact}\nworkloads:\n" +
         "  - {name: ids, kind: perplexity, sources: [" + source + "]}\n";
}

RunConfig parse(const std::string& top, const std::string& source = "{random_ids: {documents: 2, tokens: 9}}") {
  return parse_run_config(config_with(top, source), "x.yaml");
}

void expect_refused(const std::string& top, const std::string& source, const std::vector<std::string>& parts) {
  testing::expect_error<ConfigError>([&] { parse(top, source); }, parts);
}

TEST(RandomRunConfig, ReadsWeightsAndIds) {
  const RunConfig config =
      parse("weights: random\nseed: 4\n", "{name: r, random_ids: {documents: 2, tokens: 9, seed: 3}}");
  EXPECT_TRUE(config.random_weights);
  EXPECT_FALSE(config.needs_tokenizer());
  const datasets::RandomIdsSpec& ids = *config.workloads[0].sources[0].random_ids;
  EXPECT_EQ(ids.name, "r");
  EXPECT_EQ(ids.documents, 2);
  EXPECT_EQ(ids.tokens, 9);
  EXPECT_EQ(ids.seed, 3U);
  const nlohmann::json json = to_json(config);
  EXPECT_EQ(json["weights"], "random");
  EXPECT_EQ(json["workloads"][0]["sources"][0],
            nlohmann::json::parse(R"({"name": "r", "random_ids": {"documents": 2, "tokens": 9, "seed": 3}})"));
  EXPECT_TRUE(parse("", "{path: a.txt}").needs_tokenizer());
  EXPECT_FALSE(parse("").random_weights);
  EXPECT_NE(config_identity(parse("weights: random\n")), config_identity(parse("")));
}

TEST(RandomRunConfig, ACheckpointMayBeAConfigAlone) {
  const TemporaryFolder folder;
  std::ofstream(folder.path() / "model") << "{}";
  std::ofstream(folder.path() / "x.yaml")
      << config_with("weights: random\n", "{random_ids: {documents: 1, tokens: 2}}");
  EXPECT_EQ(load_run_config(folder.path() / "x.yaml").checkpoint_folder, folder.path() / "model");
  std::ofstream(folder.path() / "x.yaml") << config_with("", "{random_ids: {documents: 1, tokens: 2}}");
  testing::expect_error<ConfigError>([&] { load_run_config(folder.path() / "x.yaml"); }, {"checkpoint", "folder"});
}

TEST(RandomRunConfig, ReadsDevices) {
  EXPECT_EQ(parse("device: cuda\ndevices: [cuda:0, cuda:2]\n").gpus, (std::vector<int>{0, 2}));
  EXPECT_TRUE(parse("device: cuda\ndevices: auto\n").all_gpus);
  EXPECT_EQ(to_json(parse("device: cuda\ndevices: [cuda:1]\n"))["devices"], nlohmann::json({"cuda:1"}));
  EXPECT_EQ(to_json(parse("device: cuda\ndevices: auto\n"))["devices"], "auto");
  EXPECT_FALSE(to_json(parse("device: cuda\n")).contains("devices"));
}

TEST(RandomRunConfig, RefusesWhatMeansNothing) {
  const std::string ids = "{random_ids: {documents: 2, tokens: 9}}";
  expect_refused("weights: zero\n", ids, {"x.yaml:3", "'weights'", "stored, random"});
  expect_refused("devices: auto\n", ids, {"'devices'", "device: cuda"});
  expect_refused("device: cuda\ndevices: [cuda]\n", ids, {"'devices'", "cuda:0"});
  expect_refused("", "{random_ids: {documents: 0, tokens: 9}}", {"'documents'", "1"});
  expect_refused("", "{random_ids: {documents: 1}}", {"'tokens'"});
  expect_refused("", "{random_ids: {documents: 1, tokens: 2}, path: a.txt}", {"'path'"});
}

}  // namespace
}  // namespace replayeval
