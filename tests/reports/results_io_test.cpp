#include "reports/results_io.h"

#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <fstream>
#include <functional>
#include <limits>
#include <set>
#include <sstream>
#include <string>

#include "reports/atomic_file.h"
#include "reports/results_schema.h"
#include "tests/reports/sample_results.h"
#include "tests/temporary_folder.h"

namespace replayeval::reports {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

std::string read_text(const std::filesystem::path& file) {
  std::ostringstream text;
  text << std::ifstream(file, std::ios::binary).rdbuf();
  return text.str();
}

std::size_t file_count(const std::filesystem::path& folder) {
  const std::filesystem::directory_iterator files(folder);
  return static_cast<std::size_t>(std::distance(begin(files), end(files)));
}

TEST(ResultsJson, RoundTripKeepsEveryField) {
  const json written = to_json(sample_results());
  EXPECT_EQ(to_json(results_from_json(written)), written);
  EXPECT_EQ(to_json(results_from_json(json::parse(written.dump()))), written) << "numbers must survive their spelling";
}

TEST(ResultsJson, AnIntervalThatWasNotComputedIsAbsent) {
  const json written = to_json(sample_results());
  const json& median = written.at("/workloads/0/divergence/replay_float32/kl_median"_json_pointer);
  EXPECT_FALSE(median.contains("low"));
  EXPECT_FALSE(median.contains("high"));
  const Results read = results_from_json(written);
  EXPECT_FALSE(read.workloads[0].divergence.at("replay_float32").at("kl_median").low);
  EXPECT_TRUE(read.workloads[0].divergence.at("replay_float32").at("kl_mean").low);
}

TEST(ResultsJson, TaskFamiliesComeBackAndNameWhatIsThere) {
  Results results = sample_results();
  EXPECT_FALSE(to_json(results).contains("task_families"));
  TaskFamily& family = results.task_families.emplace_back();
  family.metric = "acc";
  family.arm = "replay_bfloat16";
  family.tasks = {{results.workloads[0].name, 10, {-0.1, -0.3, 0.2, 0.5, 0.95, "McNemar"}, 1.0},
                  {results.workloads[0].name, 20, {0.05, {}, {}, 1.0, {}, "McNemar"}, 1.0}};
  family.n = 30;
  family.gained = 2;
  family.lost = 2;
  family.by_question = {0.0, -0.1, 0.1, 1.0, 0.95, "MOVER"};
  family.by_task = {-0.025, -0.1, 0.05, {}, 0.95, "MOVER"};
  const json plain = to_json(results);
  EXPECT_EQ(to_json(results_from_json(plain)), plain);
  EXPECT_FALSE(plain.at("task_families").at(0).contains("equivalence"));
  family.detectable = 0.25;
  family.equivalence = Equivalence{0.05, 0.01, true, -0.04, 0.03, 0.95};
  family.documents_to_detect_margin = 1234;
  family.documents_to_show_equivalence = 56;
  const json written = to_json(results);
  EXPECT_EQ(to_json(results_from_json(written)), written);
  EXPECT_EQ(written.at("/task_families/0/equivalence/high"_json_pointer), 0.03);
  family.tasks[1].workload = "gone";
  EXPECT_THAT(message_of([&] { to_json(results); }),
              HasSubstr("/task_families/0/tasks/1/workload: names the workload \"gone\", expected one of those"));
  family.tasks.pop_back();
  EXPECT_THAT(message_of([&] { to_json(results); }), HasSubstr("/task_families/0/tasks"));
  family.arm = "nobody";
  EXPECT_THAT(message_of([&] { to_json(results); }), HasSubstr("task_families"));
}

TEST(ResultsJson, EmptyWorkloadListIsAResult) {
  Results results = sample_results();
  results.workloads.clear();
  EXPECT_TRUE(results_from_json(to_json(results)).workloads.empty());
}

TEST(ResultsJson, NumbersThatAreNotFiniteAreRefusedWithTheirPlace) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const auto fault = [](const std::function<void(Results&)>& spoil) {
    Results results = sample_results();
    spoil(results);
    return message_of([&] { to_json(results); });
  };
  EXPECT_THAT(fault([&](Results& r) { r.workloads[0].arms["exact_bfloat16"].metrics["perplexity"].value = nan; }),
              AllOf(HasSubstr("/workloads/0/arms/exact_bfloat16/metrics/perplexity/value"), HasSubstr("finite")));
  EXPECT_THAT(
      fault([&](Results& r) { r.workloads[0].deltas["replay_bfloat16"]["perplexity_relative"].high = infinity; }),
      HasSubstr("/workloads/0/deltas/replay_bfloat16/perplexity_relative/high"));
  EXPECT_THAT(fault([&](Results& r) { r.workloads[0].state_errors[3].head_relative_frobenius[1] = nan; }),
              HasSubstr("/workloads/0/state_errors/3/head_relative_frobenius/1"));
  EXPECT_THAT(fault([&](Results& r) {
                r.config["deep"] = {{"list", {1.0, -infinity}}};
              }),
              HasSubstr("/config/deep/list/1"));
}

// One way to break a good file, and what the message must say.
struct Breakage {
  const char* pointer;
  json value;  // discarded: erase what stands there
  std::vector<std::string> said;
};

void expect_refused(const Breakage& breakage) {
  json broken = to_json(sample_results());
  const json::json_pointer pointer(breakage.pointer);
  if (breakage.value.is_discarded()) {
    broken.at(pointer.parent_pointer()).erase(pointer.back());
  } else {
    broken[pointer] = breakage.value;
  }
  const std::string message = message_of([&] { results_from_json(broken, "some/results.json"); });
  EXPECT_THAT(message, testing::StartsWith("some/results.json: ")) << breakage.pointer;
  for (const std::string& said : breakage.said) EXPECT_THAT(message, HasSubstr(said)) << breakage.pointer;
  EXPECT_EQ(message.find('\n'), std::string::npos) << "one line";
}

TEST(ResultsSchema, BrokenResultsAreRefusedInWords) {
  const json erase = json(json::value_t::discarded);
  const std::vector<Breakage> breakages = {
      {"/schema_version", 2, {"/schema_version: found 2", "reads 1"}},
      {"/schema_version", erase, {"/schema_version: is missing"}},
      {"/extra", 1, {"unknown key \"extra\"", "expected one of"}},
      {"/baseline", erase, {"key \"baseline\" is missing"}},
      {"/tool/git", erase, {"/tool: key \"git\" is missing"}},
      {"/tool", json::array(), {"/tool: found [], expected object"}},
      {"/environment/cores", "two", {"/environment/cores: found \"two\", expected integer, at least 1"}},
      {"/checkpoint/sha256", "abc", {"/checkpoint/sha256: found \"abc\"", "matching ^[0-9a-f]{64}$"}},
      {"/arms", json::array(), {"/arms: found [], expected array, not empty"}},
      {"/arms/0/executor", "fuzzy", {"/arms/0/executor: found \"fuzzy\"", "[\"exact\",\"replay\"]"}},
      {"/arms/3/ring_storage", "int8", {"/arms/3/ring_storage: found \"int8\"", "bfloat16"}},
      {"/arms/3/buffer_len", 0, {"/arms/3/buffer_len: found 0, expected integer, at least 1"}},
      {"/arms/3/flush", erase, {"/arms/3: key \"flush\" is missing", "\"ring_form\""}},
      {"/arms/1/name", "exact_float32", {"/arms/1/name", "again"}},
      {"/baseline", "nobody", {"/baseline: names the arm \"nobody\""}},
      {"/workloads/0/kind", "poetry", {"/workloads/0/kind: found \"poetry\"", "perplexity"}},
      {"/workloads/0/seconds", -1.0, {"/workloads/0/seconds: found -1.0, expected number, at least 0"}},
      {"/workloads/0/seconds", nullptr, {"/workloads/0/seconds: found null, expected number"}},
      {"/workloads/0/positions", erase, {"/workloads/0: key \"positions\" is missing"}},
      {"/workloads/0/arms/exact_bfloat16/metrics/perplexity/value",
       "12",
       {"/workloads/0/arms/exact_bfloat16/metrics/perplexity/value: found \"12\", expected number"}},
      {"/workloads/0/arms/exact_bfloat16/speed", 3, {"/workloads/0/arms/exact_bfloat16: unknown key \"speed\""}},
      {"/workloads/0/deltas/exact_bfloat16/perplexity_relative/low", erase, {"key \"low\" is missing", "\"high\""}},
      {"/workloads/0/deltas/exact_bfloat16/perplexity_relative/confidence", erase, {"key \"confidence\" is missing"}},
      {"/workloads/0/deltas/exact_bfloat16/perplexity_relative/p_value", 1.5, {"p_value: found 1.5", "at most 1"}},
      {"/workloads/0/deltas/stranger", json::object(), {"/workloads/0/deltas/stranger: names the arm \"stranger\""}},
      {"/workloads/0/state_errors/0/depth",
       "shallow",
       {"/workloads/0/state_errors/0/depth: found \"shallow\"", "gold"}},
      {"/workloads/0/state_errors/0/arm", "stranger", {"/workloads/0/state_errors/0/arm: names the arm \"stranger\""}},
      {"/workloads/0/state_errors/0/layer", 1.5, {"/workloads/0/state_errors/0/layer: found 1.5, expected integer"}},
      {"/workloads/0/storage_counts/0/saturated", -1, {"saturated: found -1, expected integer, at least 0"}},
      {"/workloads/0/kernel_times/0/calls", erase, {"/workloads/0/kernel_times/0: key \"calls\" is missing"}},
  };
  for (const Breakage& breakage : breakages) expect_refused(breakage);
}

TEST(ResultsSchema, AnExactArmHasNoRing) {
  json broken = to_json(sample_results());
  broken["/arms/3/executor"_json_pointer] = "exact";
  EXPECT_THAT(message_of([&] { results_from_json(broken); }), HasSubstr("/arms/3: has \"ring_form\""));
  broken = to_json(sample_results());
  broken["/arms/0/executor"_json_pointer] = "replay";
  EXPECT_THAT(message_of([&] { results_from_json(broken); }), HasSubstr("/arms/0: key \"ring_form\" is missing"));
}

// Whatever key is taken away from a typed object, the reader notices, unless the key is one of the few optional ones.
TEST(ResultsSchema, EveryKeyIsRequiredOrKnownToBeOptional) {
  const std::set<std::string> optional = {"n",          "low",        "high",        "p_value",
                                          "confidence", "parameters", "state_bytes", "ring_bytes"};
  const json good = to_json(sample_results());
  const json flat = good.flatten();
  int erased = 0;
  for (const auto& [text, value] : flat.items()) {
    for (json::json_pointer pointer(text); !pointer.empty(); pointer = pointer.parent_pointer()) {
      const json& parent = good.at(pointer.parent_pointer());
      if (!parent.is_object() || text.starts_with("/config") || text.starts_with("/numerics") ||
          pointer.to_string().starts_with("/workloads/0/data/")) {
        continue;
      }
      const std::string parent_name = pointer.parent_pointer().empty() ? "" : pointer.parent_pointer().back();
      const bool free_key = optional.contains(pointer.back()) || parent_name == "metrics" ||
                            parent_name == "perplexity" || parent_name == "delta" || parent_name == "arms" ||
                            text.find("/divergence/") != std::string::npos ||
                            text.find("/deltas/") != std::string::npos;
      if (free_key) continue;
      json broken = good;
      broken.at(pointer.parent_pointer()).erase(pointer.back());
      EXPECT_NE(message_of([&] { results_from_json(broken); }), "") << pointer.to_string();
      if (++erased > 300) return;  // the same kinds of object come again and again
    }
  }
  EXPECT_GT(erased, 50);
}

TEST(ResultsSchema, TheProgramHoldsTheFileOfTheRepository) {
  EXPECT_EQ(json::parse(results_schema_text()), json::parse(read_text("reports/schema/results.schema.json")));
}

TEST(ResultsFile, SaveAndLoad) {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "results.json";
  save_results(sample_results(), file);
  const json expected = to_json(sample_results());
  EXPECT_EQ(to_json(load_results(file)), expected);
  EXPECT_EQ(to_json(load_results(folder.path())), expected) << "a folder will do";
  EXPECT_EQ(file_count(folder.path()), 1U) << "no temporary file is left";
}

TEST(ResultsFile, UnreadableFiles) {
  const TemporaryFolder folder;
  const auto fault = [](const std::filesystem::path& path) { return message_of([&] { load_results(path); }); };
  EXPECT_THAT(fault(folder.path() / "absent.json"), HasSubstr("absent.json: no such file; expected a results.json"));
  EXPECT_THAT(fault(folder.path()), HasSubstr("holds no results.json"));
  EXPECT_THAT(fault(folder.write("cut.json", to_json(sample_results()).dump().substr(0, 500))),
              HasSubstr("cut.json: is not JSON"));
  EXPECT_THAT(fault(folder.write("huge.json", R"({"schema_version": 1e999})")),
              HasSubstr("huge.json: is not JSON: number overflow parsing '1e999'"));
  EXPECT_THAT(fault(folder.write("list.json", "[]")), HasSubstr("list.json: /schema_version: is missing"));
}

TEST(ResultsFile, WhatCannotBeWrittenLeavesNothing) {
  const TemporaryFolder folder;
  EXPECT_THAT(message_of([&] { save_results(sample_results(), folder.path() / "absent" / "results.json"); }),
              HasSubstr("absent/results.json: cannot be written: No such file or directory"));
  Results broken = sample_results();
  broken.baseline = "nobody";
  EXPECT_NE(message_of([&] { save_results(broken, folder.path() / "results.json"); }), "");
  EXPECT_EQ(file_count(folder.path()), 0U);
}

// A limit on the size of files stands in for a full disk: write() fails half way just the same.
TEST(ResultsFile, AFullDiskKeepsWhatStoodThere) {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.write("results.json", "what stood there");
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit tight = before;
  tight.rlim_cur = 4096;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &tight), 0);
  const std::string message = message_of([&] { save_results(sample_results(), file); });
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_THAT(message, HasSubstr("results.json: cannot be written: File too large"));
  EXPECT_EQ(read_text(file), "what stood there");
  EXPECT_EQ(file_count(folder.path()), 1U);
}

TEST(AtomicFile, ReplacesAndIsReadableByOthers) {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.write("a", "old");
  write_file_atomically(file, std::string_view("new\0bytes", 9));
  EXPECT_EQ(read_text(file), std::string("new\0bytes", 9));
  const auto mask = ::umask(0);
  ::umask(mask);
  EXPECT_EQ(static_cast<unsigned>(std::filesystem::status(file).permissions()), 0666U & ~mask);
}

TEST(AtomicFile, ADeviceOrPipeIsRefusedNotReplaced) {
  const TemporaryFolder folder;
  const std::filesystem::path pipe = folder.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const std::filesystem::path link = folder.path() / "link";
  std::filesystem::create_symlink(pipe, link);
  for (const auto& target : {pipe, link}) {
    EXPECT_THAT(message_of([&] { write_file_atomically(target, "bytes"); }),
                AllOf(HasSubstr(pipe.string()), HasSubstr("expected a regular file")));
  }
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_EQ(file_count(folder.path()), 2U);
}

TEST(AtomicFile, ALinkStaysAndItsTargetIsReplaced) {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.write("elsewhere/file", "old");
  const std::filesystem::path link = folder.path() / "link";
  std::filesystem::create_symlink(file, link);
  write_file_atomically(link, "new");
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_EQ(read_text(file), "new");
  std::filesystem::create_symlink(folder.path() / "nothing", folder.path() / "dangling");
  EXPECT_THAT(message_of([&] { write_file_atomically(folder.path() / "dangling", "new"); }), HasSubstr("dangling"));
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "nothing"));
}

TEST(AtomicFile, NoNameIsRefused) {
  EXPECT_THAT(message_of([] { write_file_atomically("", "bytes"); }), HasSubstr("expected the name of a file"));
}

TEST(AtomicFile, AFolderInTheWay) {
  const TemporaryFolder folder;
  folder.write("a/inside", "");
  EXPECT_THAT(message_of([&] { write_file_atomically(folder.path() / "a", "x"); }),
              HasSubstr("cannot be put in its place"));
  EXPECT_EQ(file_count(folder.path()), 1U);
}

TEST(MergeResults, PutsWorkloadsSideBySide) {
  Results second = sample_results();
  second.workloads[0].name = "recall";
  second.environment["date"] = "2026-01-02T00:00:00Z";  // parts may be run at different times
  const Results merged = merge_results({{"a", sample_results()}, {"b", second}});
  ASSERT_EQ(merged.workloads.size(), 2U);
  EXPECT_EQ(merged.workloads[1].name, "recall");
}

TEST(MergeResults, RefusesWhatIsNotOneRun) {
  const auto fault = [](const std::function<void(Results&)>& change) {
    Results second = sample_results();
    second.workloads[0].name = "recall";
    change(second);
    return message_of([&] { merge_results({{"a", sample_results()}, {"b", second}}); });
  };
  EXPECT_EQ(fault([](Results&) {}), "");
  EXPECT_THAT(fault([](Results& r) { r.config["seed"] = 1; }),
              HasSubstr("a and b: these results are not parts of one run: config differs at 'config/seed'"));
  EXPECT_THAT(fault([](Results& r) { r.checkpoint["sha256"] = std::string(64, 'd'); }),
              HasSubstr("'checkpoint/sha256'"));
  EXPECT_THAT(fault([](Results& r) { r.numerics["logits"] = "bfloat16"; }), HasSubstr("'numerics/logits'"));
  EXPECT_THAT(fault([](Results& r) { r.arms[3]["buffer_len"] = 8; }), HasSubstr("'arms/3/buffer_len'"));
  EXPECT_THAT(fault([](Results& r) { r.baseline = "exact_bfloat16"; }), HasSubstr("baseline"));
  EXPECT_THAT(fault([](Results& r) { r.workloads[0].name = "heldout"; }),
              HasSubstr("a and b: workload 'heldout' is in both"));
}

}  // namespace
}  // namespace replayeval::reports
