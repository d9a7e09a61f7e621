#include "eval/comparator/run_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/temporary_folder.h"

namespace replayeval {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

const std::string minimal = R"(name: small
checkpoint: model
arms:
  - {name: exact, executor: exact}
  - {name: replay, executor: replay}
workloads:
  - name: text
    kind: perplexity
    sources: [a.txt]
)";

RunConfig parse(const std::string& text) { return parse_run_config(text, "configs/x.yaml"); }

std::string replaced(const std::string& text, const std::string& from, const std::string& to) {
  const std::size_t place = text.find(from);
  EXPECT_NE(place, std::string::npos) << from;
  return std::string(text).replace(place, from.size(), to);
}

// The whole message of the error, which must be one line.
std::string message_of(const std::string& text) {
  try {
    parse(text);
  } catch (const ConfigError& error) {
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    return error.what();
  }
  return "no error";
}

TEST(RunConfig, FillsInTheDefaultsOfTheDesign) {
  const RunConfig config = parse(minimal);
  EXPECT_EQ(config.device, DeviceKind::cpu);
  EXPECT_FALSE(config.compute_dtype);
  EXPECT_EQ(config.dt_floor, DtFloor::published);
  EXPECT_EQ(config.norm_span, NormSpan::published);
  EXPECT_EQ(config.baseline, "exact");
  EXPECT_EQ(config.baseline_index(), 0U);
  EXPECT_EQ(config.confidence, 0.95);
  const Arm& replay = config.arms[1].arm;
  EXPECT_FALSE(config.arms[1].ring_form);
  EXPECT_EQ(replay.replay.buffer_len, 16);
  EXPECT_EQ(replay.replay.route, Route::output_only);
  EXPECT_EQ(replay.replay.flush, Flush::summed);
  EXPECT_EQ(replay.state_storage.dtype, Dtype::float32);
  const WorkloadConfig& workload = config.workloads[0];
  EXPECT_EQ(workload.context, 2048);
  EXPECT_EQ(workload.stride, 2048);
  EXPECT_TRUE(workload.bos);
  EXPECT_EQ(workload.mode, Mode::teacher_forced);
  EXPECT_EQ(workload.prompt, Prompt::decode);
  EXPECT_FALSE(workload.batch);
  EXPECT_FALSE(workload.max_tokens);
  EXPECT_FALSE(workload.state_error);
  EXPECT_THAT(workload.position_buckets, ElementsAre(0, 128, 256, 512, 1024, 2048));
  EXPECT_EQ(workload.sources[0].text.path, "a.txt");
  EXPECT_EQ(workload.sources[0].text.name, "a");
}

TEST(RunConfig, NamesWhoseTokenFilesCollideAreRefused) {
  for (const char* name : {"index", "exact.kl"}) {
    EXPECT_THAT(message_of(replaced(minimal, "name: replay", std::string("name: ") + name)),
                testing::AllOf(HasSubstr("configs/x.yaml"), HasSubstr("tokens/text."), HasSubstr(name)));
  }
  const std::string dotted =
      replaced(minimal, "name: replay", "name: b.exact") + "  - {name: text.b, kind: perplexity, sources: [a.txt]}\n";
  EXPECT_THAT(message_of(dotted), HasSubstr("tokens/text.b.exact.npy"));
}

TEST(RunConfig, NamesAreShortEnoughForFileNames) {
  EXPECT_THAT(message_of(replaced(minimal, "name: replay", "name: " + std::string(65, 'x'))),
              HasSubstr("at most 64 letters"));
  EXPECT_EQ(message_of(replaced(minimal, "name: replay", "name: " + std::string(64, 'x'))), "no error");
}

TEST(RunConfig, ASecondDocumentIsRefused) {
  EXPECT_THAT(message_of(minimal + "---\nname: other\n"), HasSubstr("configs/x.yaml:11:1: a second YAML document"));
}

TEST(RunConfig, TheRingTakesTheComputeDtypeUnlessToldOtherwise) {
  const RunConfig config = parse(replaced(minimal, "executor: replay}",
                                          "executor: replay}\n  - {name: f32-ring, "
                                          "executor: replay, ring_storage: float32}"));
  const std::vector<Arm> arms = arms_of(config, RingForm::inputs, Dtype::bfloat16);
  EXPECT_EQ(arms[1].replay.ring_dtype, Dtype::bfloat16);
  EXPECT_EQ(arms[2].replay.ring_dtype, Dtype::float32);
  EXPECT_EQ(arms_of(config, RingForm::inputs, Dtype::float32)[1].replay.ring_dtype, Dtype::float32);
  EXPECT_THROW(arms_of(config, RingForm::inputs, Dtype::float16), std::invalid_argument);  // no float16 ring
}

TEST(RunConfig, ComputeDtypeFollowsTheDevice) {
  RunConfig config = parse(minimal);
  EXPECT_EQ(compute_dtype_of(config, Dtype::bfloat16), Dtype::float32);
  config.device = DeviceKind::cuda;
  EXPECT_EQ(compute_dtype_of(config, Dtype::bfloat16), Dtype::bfloat16);
  EXPECT_EQ(compute_dtype_of(parse("compute_dtype: bfloat16\n" + minimal), Dtype::float32), Dtype::bfloat16);
}

TEST(RunConfig, ReadsEveryKey) {
  const RunConfig config = parse(R"(name: full
seed: 7
checkpoint: /models/m
device: cuda
compute_dtype: float32
numerics: {dt_floor: transformers, norm_span: transformers}
baseline: b
confidence: 0.9
bootstrap_samples: 500
arm_defaults: {executor: replay, state_storage: {dtype: float16, overflow: saturate}, buffer_len: 8, route: state_and_output}
arms:
  - {name: a, flush: sequential, ring_form: inputs, ring_storage: bfloat16}
  - {name: b, executor: exact, state_storage: bfloat16}
workloads:
  - name: w
    kind: perplexity
    sources:
      - {name: s, path: "t/*.txt", separator: "^%$", max_documents: 3, max_tokens: 100, sample_seed: 5}
      - t.gz
    context: 512
    stride: 128
    bos: false
    max_tokens: 1000
    batch: 4
    block: 64
    mode: stepwise
    prompt: decode
    position_buckets: [100, 300]
    state_error: {sequences: 3, positions: [16, 100], depths: [gold, local]}
)");
  EXPECT_EQ(config.seed, 7U);
  EXPECT_EQ(config.device, DeviceKind::cuda);
  EXPECT_EQ(config.compute_dtype, Dtype::float32);
  EXPECT_EQ(config.dt_floor, DtFloor::transformers);
  EXPECT_EQ(config.norm_span, NormSpan::transformers);
  EXPECT_EQ(config.baseline_index(), 1U);
  EXPECT_EQ(config.confidence, 0.9);
  EXPECT_EQ(config.bootstrap_samples, 500);
  const ArmConfig& a = config.arms[0];
  EXPECT_EQ(a.arm.executor, Executor::replay);
  EXPECT_EQ(a.arm.state_storage.dtype, Dtype::float16);
  EXPECT_EQ(a.arm.state_storage.overflow, Overflow::saturate);
  EXPECT_EQ(a.arm.replay.buffer_len, 8);
  EXPECT_EQ(a.arm.replay.route, Route::state_and_output);
  EXPECT_EQ(a.arm.replay.flush, Flush::sequential);
  EXPECT_EQ(a.ring_storage, Dtype::bfloat16);
  EXPECT_EQ(config.arms[1].arm.state_storage.dtype, Dtype::bfloat16);
  EXPECT_EQ(config.arms[1].arm.executor, Executor::exact);
  const WorkloadConfig& workload = config.workloads[0];
  EXPECT_EQ(workload.sources[0].text.separator, "^%$");
  EXPECT_THAT(workload.sources[0].text.separator_place, testing::MatchesRegex("configs/x.yaml:[0-9]+:[0-9]+"));
  EXPECT_EQ(workload.sources[0].text.max_tokens, 100);
  EXPECT_EQ(workload.sources[0].text.sample_seed, 5U);
  EXPECT_EQ(workload.context, 512);
  EXPECT_EQ(workload.stride, 128);
  EXPECT_FALSE(workload.bos);
  EXPECT_EQ(workload.max_tokens, 1000);
  EXPECT_EQ(workload.batch, 4);
  EXPECT_EQ(workload.block, 64);
  EXPECT_EQ(workload.mode, Mode::stepwise);
  EXPECT_THAT(workload.position_buckets, ElementsAre(0, 100, 300, 512));
  EXPECT_EQ(workload.state_error->sequences, 3);
  EXPECT_THAT(workload.state_error->positions, ElementsAre(16, 100));
  EXPECT_THAT(workload.state_error->depths, ElementsAre(ErrorDepth::local, ErrorDepth::gold));
}

TEST(RunConfig, SpreadsStatePositionsOnALogarithmicAxis) {
  const RunConfig config = parse(minimal + "    state_error: {count: 8}\n");
  EXPECT_THAT(config.workloads[0].state_error->positions, ElementsAre(16, 32, 64, 128, 256, 512, 1024, 2048));
  const RunConfig one = parse(minimal + "    context: 5\n    state_error: {count: 1}\n");
  EXPECT_THAT(one.workloads[0].state_error->positions, ElementsAre(5));
}

struct Mistake {
  const char* from;
  const char* to;
  const char* message;
};

const std::vector<Mistake> mistakes = {
    Mistake{"name: small\n", "",
            ":1:1: key 'name': missing from a run; expected a name of at most 64 letters, digits, '.', "
            "'_' and '-' that does not start with '.'"},
    Mistake{"name: small", "name: a/b",
            ":1:7: key 'name': expected a name of at most 64 letters, digits, '.', '_' and '-' "
            "that does not start with '.', found 'a/b'"},
    Mistake{"checkpoint: model", "checkpoint: [model]",
            ":2:13: key 'checkpoint': expected the folder of a checkpoint, found a list"},
    Mistake{
        "checkpoint: model", "checkpoint: model\nchekpoint: x",
        ":3:1: key 'chekpoint': unknown in a run; expected one of name, seed, checkpoint, weights, device, devices, "
        "compute_dtype, numerics, baseline, confidence, bootstrap_samples, arm_defaults, arms, workloads"},
    Mistake{"checkpoint: model", "checkpoint: model\ncheckpoint: other",
            ":3:1: key 'checkpoint': given twice in a run; expected once"},
    Mistake{"checkpoint: model", "checkpoint: model\nseed: -1",
            ":3:7: key 'seed': expected a whole number from 0 to 9223372036854775807, found '-1'"},
    Mistake{"checkpoint: model", "checkpoint: model\nseed: \"1\"",
            ":3:7: key 'seed': expected a whole number from 0 to 9223372036854775807, found the string '1'"},
    Mistake{"checkpoint: model", "checkpoint: model\nconfidence: 95",
            ":3:13: key 'confidence': expected a number between 0 and 1, found '95'"},
    Mistake{"checkpoint: model", "checkpoint: model\nconfidence: .nan",
            ":3:13: key 'confidence': expected a number between 0 and 1, found '.nan'"},
    Mistake{"checkpoint: model", "checkpoint: model\ndevice: gpu",
            ":3:9: key 'device': expected one of cpu, cuda, found 'gpu'"},
    Mistake{"checkpoint: model", "checkpoint: model\nnumerics: {dt_floor: none}",
            ":3:22: key 'dt_floor': expected one of published, transformers, found 'none'"},
    Mistake{"checkpoint: model", "checkpoint: model\nbaseline: exakt",
            ":3:11: key 'baseline': expected one of exact, replay, found 'exakt'"},
    Mistake{", executor: exact}", "}", ":4:5: key 'executor': missing from an arm; expected one of exact, replay"},
    Mistake{"executor: exact}", "executor: exact, state_storage: float8}",
            ":4:51: key 'state_storage': expected one of float32, bfloat16, float16, found 'float8'"},
    Mistake{"executor: exact}", "executor: exact, buffer_len: 8}",
            ":4:48: key 'buffer_len': means nothing with executor: exact; expected only with executor: replay"},
    Mistake{"executor: replay}", "executor: replay, buffer_len: 0}",
            ":5:50: key 'buffer_len': expected a whole number from 1 to 64, found '0'"},
    Mistake{"executor: replay}", "executor: replay, buffer_len: 16.5}",
            ":5:50: key 'buffer_len': expected a whole number from 1 to 64, found '16.5'"},
    Mistake{"executor: replay}", "executor: replay, ring_storage: float16}",
            ":5:52: key 'ring_storage': expected one of compute_dtype, float32, bfloat16, found 'float16'"},
    Mistake{"executor: replay}", "executor: replay, state_storage: {dtype: float16, overflow: wrap}}",
            ":5:80: key 'overflow': expected one of infinity, saturate, found 'wrap'"},
    Mistake{"name: replay", "name: exact",
            ":5:12: key 'name': 'exact' is another arm's already; expected distinct "
            "names"},
    Mistake{"kind: perplexity", "kind: haiku",
            ":8:11: key 'kind': expected one of perplexity, recall, task, generation, churn, found 'haiku'"},
    Mistake{"[a.txt]", "[]", ":9:14: key 'sources': expected a list of sources, each with a path, found an empty list"},
    Mistake{"[a.txt]", "[{name: a}]", ":9:15: key 'path': missing from a source; expected a file or a glob"},
    Mistake{"[a.txt]", "[a.txt, b/a.txt]",
            ":9:22: key 'name': 'a' is another source's already; expected distinct names"},
    Mistake{"[a.txt]", "[a.txt]\n    context: 64\n    stride: 65",
            ":11:13: key 'stride': expected a whole number from 1 to 64, found '65'"},
    Mistake{"[a.txt]", "[a.txt]\n    bos: yes", ":10:10: key 'bos': expected true or false, found 'yes'"},
    Mistake{"[a.txt]", "[a.txt]\n    batch: many",
            ":10:12: key 'batch': expected a whole number from 1 to 65536, found 'many'"},
    Mistake{
        "[a.txt]", "[a.txt]\n    prompt: prefill",
        ":7:5: key 'prefill_tokens': missing from a workload; expected how many tokens of each window are its prompt"},
    Mistake{"[a.txt]", "[a.txt]\n    prefill_tokens: 5",
            ":10:21: key 'prefill_tokens': means nothing with prompt: decode; expected prefill"},
    Mistake{"[a.txt]", "[a.txt]\n    context: 64\n    prompt: prefill\n    prefill_tokens: 64",
            ":12:21: key 'prefill_tokens': expected a whole number from 1 to 63, found '64'"},
    Mistake{"[a.txt]", "[a.txt]\n    context: 1\n    prompt: prefill\n    prefill_tokens: 1",
            ":11:13: key 'prompt': prefill leaves nothing of a context of 1; expected decode"},
    Mistake{"[a.txt]", "[a.txt]\n    prompt: prefill\n    prefill_tokens: 5\n    state_error: {}",
            ":12:18: key 'state_error': compares states that every token went through; expected prompt: decode beside "
            "it"},
    Mistake{"[a.txt]", "[a.txt]\n    position_buckets: [5, 5]",
            ":10:27: key 'position_buckets': expected a number above the one before it, 5, found '5'"},
    Mistake{"[a.txt]", "[a.txt]\n    state_error: {count: 2, positions: [4]}",
            ":10:26: key 'count': stands beside positions; expected one of positions and count"},
    Mistake{"[a.txt]", "[a.txt]\n    state_error: {positions: [4096]}",
            ":10:31: key 'positions': expected a whole number from 1 to 2048, found '4096'"},
    Mistake{"[a.txt]", "[a.txt]\n    state_error: {depths: [deep]}",
            ":10:28: key 'depths': expected one of local, propagated, gold, found 'deep'"},
    Mistake{"[a.txt]", "[a.txt]\n    context:",
            ":10:5: key 'context': expected a whole number from 1 to 16777216, found nothing"}};

TEST(RunConfig, NamesEachMistakeWithItsPlace) {
  for (const Mistake& mistake : mistakes)
    EXPECT_EQ(message_of(replaced(minimal, mistake.from, mistake.to)), std::string("configs/x.yaml") + mistake.message);
}

TEST(RunConfig, NamesASequentialFlushOfADeltasRing) {
  EXPECT_THAT(
      message_of(replaced(minimal, "executor: replay}", "executor: replay, ring_form: deltas, flush: sequential}")),
      testing::AllOf(testing::StartsWith("configs/x.yaml:5:"), HasSubstr("flush"), HasSubstr("summed")));
}

TEST(RunConfig, NamesThePlaceOfBrokenYaml) {
  EXPECT_THAT(message_of("name: [a\nb: c"), testing::StartsWith("configs/x.yaml:2:"));
  EXPECT_THAT(message_of(""), HasSubstr("configs/x.yaml: empty; expected a run"));
  EXPECT_THAT(message_of("- a"), HasSubstr("configs/x.yaml:1:1: expected a run, a mapping of name"));
}

TEST(RunConfig, RefusesAPinThatIsNoHash) {
  EXPECT_THAT(message_of(replaced(minimal, "[a.txt]", "[{path: a.txt, sha256: ABC}]")),
              testing::AllOf(testing::StartsWith("configs/x.yaml:9:15: key 'sources'"), HasSubstr("64 lower-case")));
}

TEST(RunConfigJson, HoldsEveryDefault) {
  const nlohmann::json json = to_json(parse(minimal));
  EXPECT_EQ(json["device"], "cpu");
  EXPECT_EQ(json["compute_dtype"], "auto");
  EXPECT_EQ(json["numerics"]["dt_floor"], "published");
  EXPECT_EQ(json["numerics"]["norm_span"], "published");
  EXPECT_EQ(json["baseline"], "exact");
  EXPECT_EQ(json["arms"][1]["ring_storage"], "compute_dtype");
  EXPECT_EQ(json["arms"][1]["buffer_len"], 16);
  EXPECT_FALSE(json["arms"][0].contains("buffer_len"));
  EXPECT_EQ(json["workloads"][0]["stride"], 2048);
  EXPECT_EQ(json["workloads"][0]["batch"], "auto");
  EXPECT_FALSE(json["workloads"][0].contains("max_tokens"));
  EXPECT_EQ(json["workloads"][0]["sources"][0]["path"], "a.txt");
}

// JSON is YAML: what is written can be run again, and means the same.
TEST(RunConfigJson, RoundTrips) {
  const std::string more = minimal + "    state_error: {sequences: 2, count: 3, depths: [gold]}\n    max_tokens: 77\n";
  const RunConfig config = parse(replaced(more, "executor: replay}", "executor: replay, ring_storage: bfloat16}"));
  nlohmann::json json = to_json(config);
  for (auto& source : json["workloads"][0]["sources"]) EXPECT_TRUE(source.is_object());
  const RunConfig again = parse_run_config(json.dump(), "results.json");
  EXPECT_EQ(to_json(again), json);
  EXPECT_EQ(config_identity(again), config_identity(config));
}

// Written-out defaults undo what arm_defaults says.
TEST(RunConfig, RingsGoBackToTheirDefaults) {
  const RunConfig config = parse(
      replaced(minimal, "executor: replay}", "executor: replay, ring_form: published, ring_storage: compute_dtype}") +
      "\narm_defaults: {ring_form: inputs, ring_storage: bfloat16}\n");
  EXPECT_EQ(arms_of(config, RingForm::deltas, Dtype::float32)[1].ring_form, RingForm::deltas);
  EXPECT_EQ(arms_of(config, RingForm::deltas, Dtype::float32)[1].replay.ring_dtype, Dtype::float32);
  const RunConfig plain = parse(minimal + "\narm_defaults: {ring_form: inputs, ring_storage: bfloat16}\n");
  EXPECT_EQ(arms_of(plain, RingForm::deltas, Dtype::float32)[1].ring_form, RingForm::inputs);
}

TEST(RunConfig, NumericsOfTheDeltaRule) {
  const RunConfig config = parse(minimal + "\nnumerics: {beta: float32, log_decay: compute, qk_norm: compute}\n");
  EXPECT_EQ(config.delta_rule.beta, delta_rule::Precision::float32);
  EXPECT_EQ(config.delta_rule.log_decay, delta_rule::Precision::compute);
  EXPECT_EQ(config.delta_rule.qk_norm, delta_rule::Precision::compute);
  EXPECT_EQ(parse(minimal).delta_rule.beta, delta_rule::Precision::compute);
}

TEST(ConfigIdentity, SeesEverySettingButTheName) {
  const std::string identity = config_identity(parse(minimal));
  EXPECT_EQ(identity.size(), 64U);
  EXPECT_EQ(identity, config_identity(parse(replaced(minimal, "name: small", "name: other"))));
  // Order of keys, comments and defaults written out make no other run.
  EXPECT_EQ(identity, config_identity(parse("device: cpu  # the default\n" + minimal)));
  for (const auto& [from, to] :
       std::vector<std::pair<std::string, std::string>>{{"checkpoint: model", "checkpoint: other"},
                                                        {"checkpoint: model", "checkpoint: model\nseed: 1"},
                                                        {"checkpoint: model", "checkpoint: model\ndevice: cuda"},
                                                        {"checkpoint: model", "checkpoint: model\nbaseline: replay"},
                                                        {"executor: exact", "executor: exact, state_storage: bfloat16"},
                                                        {"executor: replay", "executor: replay, buffer_len: 8"},
                                                        {"[a.txt]", "[b.txt]"},
                                                        {"[a.txt]", "[a.txt]\n    context: 64"}})
    EXPECT_NE(identity, config_identity(parse(replaced(minimal, from, to)))) << to;
}

class LoadRunConfig : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) {
    fs::create_directories((folder.path() / name).parent_path());
    std::ofstream(folder.path() / name) << text;
  }
  TemporaryFolder folder;
};

TEST_F(LoadRunConfig, FindsFilesBesideTheConfig) {
  fs::create_directories(folder.path() / "model");
  write("text/a.txt", "a");
  write("configs/x.yaml",
        replaced(replaced(minimal, "checkpoint: model", "checkpoint: ../model"), "a.txt", "../text/*.txt"));
  const RunConfig config = load_run_config(folder.path() / "configs/x.yaml");
  EXPECT_EQ(config.checkpoint_folder, folder.path() / "model");
  EXPECT_EQ(config.checkpoint, "../model");  // as written, so that results name no machine's folders
  const SourceConfig& source = config.workloads[0].sources[0];
  EXPECT_TRUE(fs::exists(source.root / "../text/a.txt"));
}

TEST_F(LoadRunConfig, FallsBackOnTheWorkingDirectory) {  // the repository's root, in tests
  write("x.yaml",
        replaced(replaced(minimal, "checkpoint: model", "checkpoint: checkpoints"), "a.txt", "configs/*.yaml"));
  const RunConfig config = load_run_config(folder.path() / "x.yaml");
  EXPECT_EQ(config.checkpoint_folder, "checkpoints");
  EXPECT_EQ(config.workloads[0].sources[0].root, ".");
}

TEST_F(LoadRunConfig, AGlobMayBeginWithItsWildcardWhereTheConfigIsNamedBare) {
  const fs::path before = fs::current_path();
  fs::create_directories(folder.path() / "model");
  write("a.txt", "a");
  write("x.yaml", replaced(minimal, "a.txt", "\"*.txt\""));
  fs::current_path(folder.path());
  const RunConfig config = load_run_config("x.yaml");
  fs::current_path(before);
  EXPECT_EQ(config.workloads[0].sources[0].root, ".");
}

TEST_F(LoadRunConfig, NamesWhatIsNotThere) {
  const fs::path file = folder.path() / "x.yaml";
  const auto load = [&] { load_run_config(file); };
  EXPECT_THAT(load, ThrowsMessage<ConfigError>(HasSubstr("x.yaml: cannot be read")));
  write("x.yaml", minimal);
  EXPECT_THAT(load, ThrowsMessage<ConfigError>(testing::AllOf(
                        HasSubstr("x.yaml:2:13: key 'checkpoint': expected an existing folder; neither '"),
                        HasSubstr("model' nor 'model' is there"))));
  fs::create_directories(folder.path() / "model");
  EXPECT_THAT(load,
              ThrowsMessage<ConfigError>(HasSubstr("x.yaml:9:15: key 'path': expected an existing file or folder")));
  write("x.yaml", replaced(minimal, "a.txt", "/nowhere/at/all/*.txt"));
  EXPECT_THAT(load, ThrowsMessage<ConfigError>(HasSubstr("'/nowhere/at/all' is not there")));
  EXPECT_THAT([&] { load_run_config(folder.path()); }, ThrowsMessage<ConfigError>(HasSubstr("is a folder")));
}

// The configurations that the project ships must stay readable.
TEST(ShippedConfigs, AreAllValid) {
  int found = 0;
  for (const char* folder : {"configs", "configs/examples"}) {
    if (!fs::exists(folder)) continue;
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (entry.path().extension() != ".yaml") continue;
      std::ifstream stream(entry.path());
      const std::string text((std::istreambuf_iterator<char>(stream)), {});
      EXPECT_NO_THROW(parse_run_config(text, entry.path())) << entry.path();
      ++found;
    }
  }
  EXPECT_GE(found, 1);
}

TEST(ShippedConfigs, TheSecondDemoHasBothRingForms) {
  std::ifstream stream("configs/demo-delta-rule.yaml");
  const std::string text((std::istreambuf_iterator<char>(stream)), {});
  const RunConfig config = parse_run_config(text, "configs/demo-delta-rule.yaml");
  const std::vector<Arm> arms = arms_of(config, RingForm::deltas, Dtype::float32);
  ASSERT_EQ(arms.size(), 7U);
  EXPECT_TRUE(same_arithmetic(arms[0], arms[1]));
  EXPECT_EQ(arms[4].ring_form, RingForm::deltas);
  EXPECT_EQ(arms[5].ring_form, RingForm::inputs);
}

TEST(ShippedConfigs, TheDemoIsTheOnePromised) {
  std::ifstream stream("configs/demo.yaml");
  const std::string text((std::istreambuf_iterator<char>(stream)), {});
  const RunConfig config = parse_run_config(text, "configs/demo.yaml");
  const std::vector<Arm> arms = arms_of(config, RingForm::inputs, Dtype::float32);
  ASSERT_EQ(arms.size(), 6U);
  EXPECT_EQ(config.baseline_index(), 0U);
  EXPECT_TRUE(same_arithmetic(arms[0], arms[1]));
  EXPECT_FALSE(same_arithmetic(arms[0], arms[2]));
  for (std::size_t a = 3; a < 6; ++a) EXPECT_EQ(arms[a].replay.buffer_len, 16);
  EXPECT_EQ(arms[3].replay.ring_dtype, Dtype::float32);
  EXPECT_EQ(arms[4].replay.ring_dtype, Dtype::bfloat16);
  EXPECT_EQ(arms[4].state_storage.dtype, Dtype::float32);
  EXPECT_EQ(arms[5].state_storage.dtype, Dtype::bfloat16);
  EXPECT_EQ(config.workloads[0].context, 2048);
  std::int64_t scored = 0;
  for (const SourceConfig& source : config.workloads[0].sources) scored += source.text.max_tokens;
  EXPECT_GE(scored, 20000);
}

}  // namespace
}  // namespace replayeval
