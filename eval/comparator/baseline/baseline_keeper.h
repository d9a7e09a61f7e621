// Keeps, while a run scores tokens, what a portable baseline is made of, and writes it (baseline_format.h).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "eval/comparator/baseline/baseline_format.h"
#include "eval/comparator/baseline/hidden_rows.h"
#include "eval/comparator/token_records.h"
#include "eval/executors/arm.h"
#include "reports/atomic_file.h"
#include "reports/results.h"

namespace replayeval {

class Model;

// How a workload's tokens came: its shards one after the other, then sorted into text order.
struct TokenOrder {
  std::vector<std::size_t> shard_tokens;  // of each shard
  std::vector<std::size_t> came;          // [tokens], in text order: which one it was as they came
};

class BaselineKeeper {
 public:
  // `folder`: the baseline's own. Throws std::invalid_argument on an arm that is not among the run's.
  BaselineKeeper(std::filesystem::path folder, const BaselineRequest& request, const std::vector<Arm>& arms,
                 std::size_t hidden_size, Dtype compute_dtype);

  bool keeps_hidden() const { return form_ == BaselineForm::hidden; }
  // Whether the folder holds the workload already, kept as asked.
  bool holds(const std::string& workload) const;
  // What `tokens` of them will take, in words: "24,576 tokens x 2 arms, bfloat16 hidden states: 25.6 MiB".
  std::string size_text(std::int64_t tokens) const;

  HiddenRows empty_rows() const;
  // hidden: [all of the run's arms, tokens, hidden_size].
  void append(HiddenRows& rows, const at::Tensor& hidden) const;

  // Of a shard, beside the shard's own files, so that a run can go on. Damaged ones are as if they were not there.
  void save_rows(const std::filesystem::path& shards, std::int64_t index, const HiddenRows& rows) const;
  bool has_rows(const std::filesystem::path& shards, std::int64_t index, std::size_t tokens) const;

  // records: in text order. Writes WORKLOAD.safetensors whole or not at all. Throws reports::ResultsError when it
  // cannot be written.
  void write(const std::string& workload, const TokenRecords& records, const TokenOrder& order,
             const std::filesystem::path& shards) const;

  // Adds the workload to baseline.json, with what `results` says of the run.
  void describe(const reports::Results& results, const reports::Workload& workload, const Model& model);

 private:
  void write_rows(reports::AtomicFile& file, std::uint64_t begin, const TokenOrder& order,
                  const std::filesystem::path& shards) const;
  BaselineSizes sizes(std::int64_t tokens) const;
  std::vector<std::string> names() const;

  std::filesystem::path folder_;
  BaselineForm form_;
  Dtype dtype_;
  std::int64_t hidden_size_;
  std::vector<Arm> arms_;                   // that are kept ...
  std::vector<std::int64_t> rows_;          // ... and which of the run's these are
  std::optional<std::string> head_sha256_;  // once it was asked for: a run has one model
};

}  // namespace replayeval
