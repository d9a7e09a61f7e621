#include "eval/comparator/baseline/stored_baseline.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <ranges>
#include <tuple>

#include "datasets/error.h"
#include "datasets/sha256.h"
#include "eval/comparator/baseline/head_hash.h"
#include "eval/executors/device.h"
#include "eval/model/model.h"

namespace replayeval {
namespace {

namespace fs = std::filesystem;
namespace names = baseline_names;
using nlohmann::json;

template <typename T>
std::span<const T> values_of(const TensorView& tensor) {
  return {reinterpret_cast<const T*>(tensor.bytes.data()), tensor.bytes.size() / sizeof(T)};
}

at::ScalarType type_of(const std::string& dtype) {
  return dtype == "BF16" ? at::kBFloat16 : dtype == "F16" ? at::kHalf : at::kFloat;
}

const TensorView& tensor_of(const std::map<std::string, TensorView>& tensors, const char* name, const fs::path& file) {
  const auto found = tensors.find(name);
  if (found == tensors.end()) throw BaselineError(fmt::format("{}: tensor \"{}\" is missing", file.string(), name));
  return found->second;
}

void expect_form(const TensorView& tensor, std::initializer_list<const char*> dtypes,
                 const std::vector<std::int64_t>& shape, const fs::path& file) {
  const bool known =
      std::any_of(dtypes.begin(), dtypes.end(), [&](const char* dtype) { return tensor.dtype == dtype; });
  if (known && tensor.shape == shape) return;
  throw BaselineError(fmt::format("{}: tensor \"{}\" is {} {}; expected {} {}", file.string(), tensor.name,
                                  tensor.dtype, json(tensor.shape).dump(), *dtypes.begin(), json(shape).dump()));
}

json parse(const std::string& text, const fs::path& file) {
  json description = json::parse(text, nullptr, false);
  if (description.is_discarded() || !description.is_object())
    throw BaselineError(file.string() + ": not a JSON object; expected what `run --save-baseline` wrote");
  if (const json version = description.value("format_version", json()); version != names::format_version)
    throw BaselineError(fmt::format("{}: format_version {}; this program reads {}", file.string(), version.dump(),
                                    names::format_version));
  return description;
}

json hashes_of(const json& data) {
  json hashes = json::array();
  for (const json& source : data.value("sources", json::array())) hashes.push_back(source.value("sha256", ""));
  return hashes;
}

}  // namespace

StoredWorkload::StoredWorkload(const fs::path& file, std::int64_t arms, std::optional<std::int64_t> hidden_size)
    : mapped_(file), file_(file), arms_(arms) {
  std::map<std::string, TensorView> tensors;
  for (TensorView& tensor : read_safetensors(mapped_.bytes(), file)) tensors.emplace(tensor.name, std::move(tensor));
  const TensorView& index = tensor_of(tensors, names::index, file);
  const std::int64_t tokens = index.shape.empty() ? 0 : index.shape.front();
  expect_form(index, {"I64"}, {tokens, 4}, file);
  const TensorView& log_probs = tensor_of(tensors, names::log_probs, file);
  expect_form(log_probs, {"F64"}, {tokens, arms}, file);
  index_ = values_of<std::int64_t>(index);
  log_probs_ = values_of<double>(log_probs);
  if (!hidden_size) return;
  const TensorView& hidden = tensor_of(tensors, names::hidden, file);
  expect_form(hidden, {"BF16", "F16", "F32"}, {tokens, arms, *hidden_size}, file);
  // ATen only reads what it is given here.
  hidden_ = at::from_blob(const_cast<std::byte*>(hidden.bytes.data()), hidden.shape, type_of(hidden.dtype));
}

std::vector<std::int64_t> StoredWorkload::find(const TokenRecords& records, std::size_t first,
                                               std::size_t count) const {
  std::vector<std::int64_t> found;
  for (std::size_t token = first; token < first + count; ++token) {
    const std::pair place(records.document[token], records.position[token]);
    const auto comes_before = [&](std::size_t kept) {
      return std::tie(index_[4 * kept], index_[4 * kept + 1]) < std::tie(place.first, place.second);
    };
    const auto all = std::views::iota(std::size_t{0}, size());
    const std::size_t kept = *std::ranges::partition_point(all, comes_before);
    const std::size_t row = 4 * kept;
    const bool same = row < index_.size() && index_[row] == place.first && index_[row + 1] == place.second &&
                      index_[row + 2] == records.window_position[token] && index_[row + 3] == records.target[token];
    if (!same)
      throw BaselineError(fmt::format(
          "{}: does not hold token {} (id {}) of document {} after {} tokens of its window; expected the "
          "text and windows of this run",
          file_.string(), place.second, records.target[token], place.first, records.window_position[token]));
    found.push_back(static_cast<std::int64_t>(kept));
  }
  return found;
}

at::Tensor StoredWorkload::hidden(std::span<const std::int64_t> tokens) const {
  const at::Tensor places = at::empty({static_cast<std::int64_t>(tokens.size())}, at::kLong);
  std::copy(tokens.begin(), tokens.end(), places.mutable_data_ptr<std::int64_t>());
  return hidden_.index_select(0, places).transpose(0, 1).contiguous();
}

std::vector<double> StoredWorkload::log_probs(std::int64_t arm) const {
  std::vector<double> values;
  for (std::size_t at = static_cast<std::size_t>(arm); at < log_probs_.size(); at += static_cast<std::size_t>(arms_))
    values.push_back(log_probs_[at]);
  return values;
}

StoredBaseline StoredBaseline::open(const fs::path& folder) {
  StoredBaseline baseline;
  baseline.file_ = folder / names::file;
  std::ifstream stream(baseline.file_, std::ios::binary);
  if (!stream || !fs::is_regular_file(baseline.file_)) {
    const fs::path inside = folder / "baseline";  // of a run's output
    throw BaselineError(baseline.file_.string() +
                        ": cannot be read; expected a folder that `run --save-baseline` wrote" +
                        (fs::is_regular_file(inside / names::file) ? ", such as " + inside.string() : ""));
  }
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  baseline.sha256_ = datasets::sha256_hex(text);
  baseline.description_ = parse(text, baseline.file_);
  try {
    const json& description = baseline.description_;
    const std::string form = description.at("form");
    const auto known = parse_baseline_form(form);
    if (!known) throw BaselineError(baseline.file_.string() + ": form '" + form + "'; expected hidden or log_probs");
    baseline.form_ = *known;
    for (const json& arm : description.at("arms")) baseline.arms_.push_back(arm.at("name"));
    if (baseline.arms_.empty()) throw BaselineError(baseline.file_.string() + ": arms: none; expected one at least");
    for (const auto& [name, workload] : description.at("workloads").items()) {
      const fs::path file = folder / workload.at("file").get<std::string>();
      if (datasets::sha256_file(file) != workload.at("sha256"))
        throw BaselineError(file.string() + ": its SHA-256 is not the one in " + baseline.file_.string());
    }
  } catch (const json::exception& error) {
    throw BaselineError(fmt::format("{}: {}", baseline.file_.string(), error.what()));
  } catch (const datasets::DataError& error) {
    throw BaselineError(error.what());
  }
  return baseline;
}

json StoredBaseline::describe() const {
  json description = description_;
  description.erase("workloads");
  description["sha256"] = sha256_;
  return description;
}

std::vector<StoredPair> StoredBaseline::pairs(const std::vector<Arm>& arms) const {
  const auto place = [&](const std::string& name) {
    const auto found = std::find(arms_.begin(), arms_.end(), name);
    return found == arms_.end() ? std::optional<std::int64_t>() : std::optional<std::int64_t>(found - arms_.begin());
  };
  const std::int64_t otherwise = place(description_.value("baseline", "")).value_or(0);
  std::vector<StoredPair> pairs;
  for (std::size_t arm = 0; arm < arms.size(); ++arm) pairs.push_back({arm, place(arms[arm].name).value_or(otherwise)});
  return pairs;
}

void StoredBaseline::check(const Model& model) const {
  if (form_ != BaselineForm::hidden) return;
  const auto refuse = [&](const char* what, const json& found, const json& expected) {
    throw BaselineError(fmt::format("{}: {} {}; expected this model's {} (log_probs can be compared instead)",
                                    file_.string(), what, found.dump(), expected.dump()));
  };
  if (const json size = description_.value("hidden_size", json()); size != model.hidden_size())
    refuse("hidden_size", size, model.hidden_size());
  const std::string head = head_sha256(model);
  if (const json stored = description_.value("head_sha256", json()); stored != head)
    refuse("head_sha256", stored, head);
}

void StoredBaseline::expect(const std::string& name, const json& data) const {
  const json& workloads = description_.at("workloads");
  if (!workloads.contains(name)) {
    std::string there;
    for (const auto& [other, workload] : workloads.items()) there += (there.empty() ? "" : ", ") + other;
    throw BaselineError(
        fmt::format("{}: holds no workload '{}'; there are: {}", file_.string(), name, there.empty() ? "none" : there));
  }
  const json& stored = workloads.at(name);
  const auto expect_same = [&](const char* what, const json& there, const json& here) {
    if (there == here) return;
    throw BaselineError(fmt::format("{}: workload '{}': its {} is {}; expected this run's, {}", file_.string(), name,
                                    what, there.dump(), here.dump()));
  };
  expect_same("sources' sha256", hashes_of(stored.at("data")), hashes_of(data));
  for (const char* key : {"tokenizer", "context", "stride", "bos", "max_tokens"})
    expect_same(key, stored.at("data").value(key, json()), data.value(key, json()));
}

std::shared_ptr<const StoredWorkload> StoredBaseline::workload(const std::string& name, const json& data) const {
  expect(name, data);
  const json& stored = description_.at("workloads").at(name);
  std::optional<std::int64_t> hidden_size;
  if (form_ == BaselineForm::hidden) hidden_size = description_.at("hidden_size").get<std::int64_t>();
  return std::make_shared<StoredWorkload>(file_.parent_path() / stored.at("file").get<std::string>(),
                                          static_cast<std::int64_t>(arms_.size()), hidden_size);
}

}  // namespace replayeval
