#include "datasets/tasks/sample_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "datasets/error.h"
#include "datasets/tasks/plain_task.h"
#include "tests/datasets/tasks/scratch_folder.h"

namespace replayeval::tasks {
namespace {

TaskDocument plain(const std::string& row) {
  PlainTaskReader reader({});
  return reader.read(read_python_json(row, "row"), 0, 1, "row");
}

TEST(SampleWriter, PlainDocumentsReadLikeTheHarnesses) {
  const TaskDocument document = plain(R"({"context": "Q", "choices": ["a", "b"], "answer": 1})");
  TaskSettings settings;
  settings.type = RequestType::multiple_choice;
  settings.metrics = default_metrics(RequestType::multiple_choice);
  const DocumentResponse response{{{-1.5, false}, {-1.25, true}}, {}};
  const OrderedJson row = sample_row(document, response, TaskScorer(settings, "t").score(document, response).at(0));
  // The hashes are hashlib's.
  EXPECT_EQ(
      write_python_json(row),
      R"({"doc_id": 0, "doc": {"context": "Q", "choices": ["a", "b"], "answer": 1}, "target": "1", )"
      R"("arguments": {"gen_args_0": {"arg_0": "Q", "arg_1": " a"}, "gen_args_1": {"arg_0": "Q", "arg_1": " b"}}, )"
      R"("resps": [[["-1.5", "False"]], [["-1.25", "True"]]], "filtered_resps": [["-1.5", "False"], ["-1.25", "True"]], )"
      R"("filter": "none", "metrics": ["acc", "acc_norm"], )"
      R"("doc_hash": "f1412476d356507bd2c4af94a826a0b12f4ec17a4a1e130cf4032491646a577b", )"
      R"("prompt_hash": "4ae81572f06e1b88fd5ced7a1a000945432e83e1551e6f721ee9c00b8cc33260", )"
      R"("target_hash": "6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b", "acc": 1.0, "acc_norm": 1.0})");
}

TEST(SampleWriter, LeavesNothingUnlessFinished) {
  const ScratchFolder folder;
  const TaskDocument document = plain(R"({"text": "x"})");
  {
    SampleWriter writer(folder.path() / "s.jsonl");
    writer.add(document, {{{-1, false}}, {}}, {FilterScores{"none", {}, {}}});
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  SampleWriter lost(folder.path() / "none" / "s.jsonl");
  EXPECT_THAT(message_of<datasets::DataError>([&] { lost.add(document, {}, {FilterScores{}}); }),
              ::testing::HasSubstr("cannot be written"));
}

}  // namespace
}  // namespace replayeval::tasks
