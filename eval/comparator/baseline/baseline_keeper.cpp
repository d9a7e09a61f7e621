#include "eval/comparator/baseline/baseline_keeper.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <stdexcept>
#include <utility>

#include "datasets/sha256.h"
#include "eval/comparator/baseline/head_hash.h"
#include "eval/model/model.h"
#include "reports/atomic_file.h"
#include "reports/numbers.h"

namespace replayeval {
namespace {

namespace fs = std::filesystem;
namespace names_of = baseline_names;
using nlohmann::json;

constexpr std::size_t hash_digits = 64;

fs::path rows_file(const fs::path& shards, std::int64_t index) { return shards / fmt::format("{:06}.hidden", index); }

std::string_view text_of(const void* first, std::size_t bytes) { return {static_cast<const char*>(first), bytes}; }

template <typename T>
std::string_view text_of(const std::vector<T>& values) {
  return text_of(values.data(), values.size() * sizeof(T));
}

std::string read_file(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

// The rows behind their hash; nothing where the file is missing or damaged.
std::string read_rows(const fs::path& file) {
  std::string text = read_file(file);
  if (text.size() < hash_digits) return {};
  const std::string hash = text.substr(0, hash_digits);
  text.erase(0, hash_digits);
  return datasets::sha256_hex(text) == hash ? text : std::string();
}

json read_description(const fs::path& file) {
  std::ifstream stream(file);
  if (!stream) return json::object();
  json description = json::parse(stream, nullptr, false);
  return description.is_object() ? description : json::object();
}

}  // namespace

BaselineKeeper::BaselineKeeper(fs::path folder, const BaselineRequest& request, const std::vector<Arm>& arms,
                               std::size_t hidden_size, Dtype compute_dtype)
    : folder_(std::move(folder)),
      form_(request.form),
      dtype_(request.dtype.value_or(compute_dtype)),
      hidden_size_(static_cast<std::int64_t>(hidden_size)) {
  for (const std::string& name : request.arms) {
    const auto is_it = [&](const Arm& arm) { return arm.name == name; };
    if (std::none_of(arms.begin(), arms.end(), is_it))
      throw std::invalid_argument(fmt::format("--baseline-arms: no arm of the config is named '{}'", name));
  }
  for (std::size_t arm = 0; arm < arms.size(); ++arm) {
    const auto& wanted = request.arms;
    if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), arms[arm].name) == wanted.end()) continue;
    arms_.push_back(arms[arm]);
    rows_.push_back(static_cast<std::int64_t>(arm));
  }
}

BaselineSizes BaselineKeeper::sizes(std::int64_t tokens) const {
  BaselineSizes sizes{tokens, static_cast<std::int64_t>(arms_.size()), hidden_size_, {}};
  if (keeps_hidden()) sizes.hidden = dtype_;
  return sizes;
}

std::vector<std::string> BaselineKeeper::names() const {
  std::vector<std::string> names;
  for (const Arm& arm : arms_) names.push_back(arm.name);
  return names;
}

bool BaselineKeeper::holds(const std::string& workload) const {
  const json there = read_description(folder_ / names_of::file);
  if (there.value("form", "") != baseline_form_name(form_) || !there.contains("arms")) return false;
  if (keeps_hidden() && there.value("hidden_dtype", "") != dtype_name(dtype_)) return false;
  std::vector<std::string> kept;
  for (const json& arm : there.at("arms")) kept.push_back(arm.value("name", ""));
  return kept == names() && there.contains("workloads") && there.at("workloads").contains(workload) &&
         fs::is_regular_file(folder_ / baseline_file(workload));
}

std::string BaselineKeeper::size_text(std::int64_t tokens) const {
  const std::string arms = fmt::format("{} arm{}", arms_.size(), arms_.size() == 1 ? "" : "s");
  const std::string what = keeps_hidden()
                               ? fmt::format("{} hidden states of {} numbers", dtype_name(dtype_), hidden_size_)
                               : std::string("log-probabilities");
  return fmt::format("{} tokens of {}, {}: {}", reports::count_text(tokens), arms, what,
                     reports::bytes_text(static_cast<double>(baseline_bytes(sizes(tokens)))));
}

HiddenRows BaselineKeeper::empty_rows() const {
  HiddenRows rows;
  rows.dtype = dtype_;
  rows.arms = static_cast<std::int64_t>(arms_.size());
  rows.hidden_size = hidden_size_;
  return rows;
}

void BaselineKeeper::append(HiddenRows& rows, const at::Tensor& hidden) const {
  rows.append(hidden.index_select(0, at::tensor(rows_, at::kLong).to(hidden.device())));
}

void BaselineKeeper::save_rows(const fs::path& shards, std::int64_t index, const HiddenRows& rows) const {
  fs::create_directories(shards);
  const std::string_view bytes = text_of(rows.bytes);
  reports::AtomicFile file(rows_file(shards, index));
  file.write(datasets::sha256_hex(bytes));
  file.write(bytes);
  file.commit();
}

bool BaselineKeeper::has_rows(const fs::path& shards, std::int64_t index, std::size_t tokens) const {
  return read_rows(rows_file(shards, index)).size() == tokens * empty_rows().row_bytes();
}

void BaselineKeeper::write(const std::string& workload, const TokenRecords& records, const TokenOrder& order,
                           const fs::path& shards) const {
  fs::create_directories(folder_);
  const BaselineSizes all = sizes(static_cast<std::int64_t>(records.size()));
  const std::vector<TensorLayout> tensors = baseline_tensors(all);
  const std::string header = safetensors_header(tensors);
  reports::AtomicFile file(folder_ / baseline_file(workload));
  file.reserve(header.size() + baseline_bytes(all));
  file.write(header);
  std::vector<std::int64_t> index;
  std::vector<double> log_probs;
  for (std::size_t token = 0; token < records.size(); ++token) {
    index.insert(index.end(), {records.document[token], records.position[token], records.window_position[token],
                               records.target[token]});
    for (const std::int64_t arm : rows_)
      log_probs.push_back(records.arms[static_cast<std::size_t>(arm)].log_prob[token]);
  }
  file.write(text_of(index));
  file.write(text_of(log_probs));
  if (keeps_hidden()) write_rows(file, header.size() + tensors[0].bytes() + tensors[1].bytes(), order, shards);
  file.commit();
}

// From the shards, each token's rows to its place in text order.
void BaselineKeeper::write_rows(reports::AtomicFile& file, std::uint64_t begin, const TokenOrder& order,
                                const fs::path& shards) const {
  const std::size_t row = empty_rows().row_bytes();
  std::vector<std::size_t> place(order.came.size());
  for (std::size_t token = 0; token < place.size(); ++token) place[order.came[token]] = token;
  std::size_t came = 0;
  for (std::size_t shard = 0; shard < order.shard_tokens.size(); ++shard) {
    const fs::path rows_of_shard = rows_file(shards, static_cast<std::int64_t>(shard));
    const std::string rows = read_rows(rows_of_shard);
    if (rows.size() != order.shard_tokens[shard] * row)
      throw BaselineError(rows_of_shard.string() + ": is missing or damaged; the same command computes it again");
    for (std::size_t token = 0; token < order.shard_tokens[shard]; ++token)
      file.write_at(begin + place[came++] * row, std::string_view(rows).substr(token * row, row));
  }
}

void BaselineKeeper::describe(const reports::Results& results, const reports::Workload& workload, const Model& model) {
  const fs::path file = folder_ / names_of::file;
  json description = read_description(file);
  json workloads = description.value("workloads", json::object());
  workloads[workload.name] = {{"file", baseline_file(workload.name)},
                              {"sha256", datasets::sha256_file(folder_ / baseline_file(workload.name))},
                              {"data", workload.data}};
  json arms = json::array();
  for (const Arm& arm : arms_) arms.push_back(to_json(arm));
  description = {{"format_version", names_of::format_version},
                 {"form", baseline_form_name(form_)},
                 {"tool", results.tool},
                 {"environment", results.environment},
                 {"checkpoint", results.checkpoint},
                 {"numerics", results.numerics},
                 {"arms", std::move(arms)},
                 {"baseline", results.baseline},
                 {"hidden_size", hidden_size_},
                 {"workloads", std::move(workloads)}};
  if (keeps_hidden()) {
    description["hidden_dtype"] = dtype_name(dtype_);
    if (!head_sha256_) head_sha256_ = head_sha256(model);
    description["head_sha256"] = *head_sha256_;
  }
  reports::write_file_atomically(file, description.dump(2) + "\n");
}

}  // namespace replayeval
