// A portable baseline that an earlier run kept (baseline_format.h), read back.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "eval/checkpoint/mapped_file.h"
#include "eval/comparator/baseline/baseline_format.h"
#include "eval/comparator/token_records.h"
#include "eval/executors/arm.h"

namespace replayeval {

class Model;

// What is kept of one workload.
class StoredWorkload {
 public:
  // Throws BaselineError, CheckpointError when the file is not what baseline.json and the format say.
  StoredWorkload(const std::filesystem::path& file, std::int64_t arms, std::optional<std::int64_t> hidden_size);

  std::size_t size() const { return index_.size() / 4; }  // tokens
  // Where it keeps the tokens [first, first + count) of `records`. Throws BaselineError on a token that it does not
  // hold, naming document and position.
  std::vector<std::int64_t> find(const TokenRecords& records, std::size_t first, std::size_t count) const;
  at::Tensor hidden(std::span<const std::int64_t> tokens) const;  // [arms, tokens, hidden_size] on the CPU
  std::vector<double> log_probs(std::int64_t arm) const;          // [tokens], in text order

 private:
  MappedFile mapped_;
  std::filesystem::path file_;
  std::span<const std::int64_t> index_;
  std::span<const double> log_probs_;
  std::int64_t arms_;
  at::Tensor hidden_;  // [tokens, arms, hidden_size], in the mapped file
};

// One of a run's arms, and the stored one that it is compared with.
struct StoredPair {
  std::size_t arm = 0;
  std::int64_t stored = 0;
};

class StoredBaseline {
 public:
  // Reads baseline.json and checks every file against its SHA-256. Throws BaselineError.
  static StoredBaseline open(const std::filesystem::path& folder);

  BaselineForm form() const { return form_; }
  // SHA-256 of baseline.json, which holds the hashes of all else.
  const std::string& sha256() const { return sha256_; }
  // {form, arms, checkpoint, tool, environment, numerics, hidden_dtype?}, as results say what was compared with.
  nlohmann::json describe() const;
  std::size_t arm_count() const { return arms_.size(); }
  const std::string& arm_name(std::int64_t stored) const { return arms_.at(static_cast<std::size_t>(stored)); }

  // Each arm with the stored one of its name, or else with the stored run's baseline, or else the first that there is.
  std::vector<StoredPair> pairs(const std::vector<Arm>& arms) const;

  // Before anything is decoded. Throws BaselineError where hidden states are of another head, size or vocabulary.
  void check(const Model& model) const;
  // data: what the workload is going to score (WindowReader::describe()). Throws BaselineError when the baseline holds
  // no such workload, or one of other text or windows.
  void expect(const std::string& name, const nlohmann::json& data) const;
  // What is kept of it, expected as above.
  std::shared_ptr<const StoredWorkload> workload(const std::string& name, const nlohmann::json& data) const;

 private:
  std::filesystem::path file_;
  nlohmann::json description_;
  std::string sha256_;
  BaselineForm form_ = BaselineForm::hidden;
  std::vector<std::string> arms_;
};

}  // namespace replayeval
