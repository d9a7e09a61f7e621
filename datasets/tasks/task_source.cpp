#include "datasets/tasks/task_source.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <functional>
#include <map>
#include <utility>
#include <variant>

#include "datasets/sha256.h"
#include "datasets/tasks/harness_results.h"
#include "datasets/tasks/harness_sample.h"
#include "datasets/tasks/json_member.h"
#include "datasets/tasks/jsonl_file.h"
#include "datasets/tasks/plain_task.h"

namespace replayeval::tasks {
namespace {

using datasets::DataError;

constexpr std::string_view default_filter = "none";

std::string filter_of(const OrderedJson& row, const std::string& place) {
  const OrderedJson* filter = find_member(row, "filter", place);
  return filter == nullptr ? std::string(default_filter) : as_name(*filter, place + ": filter");
}

TaskSettings settings_for(const TaskSourceSpec& spec, const std::filesystem::path& file,
                          const std::optional<HarnessSettings>& stated) {
  TaskSettings settings = stated ? stated->settings : TaskSettings{};
  if (settings.task.empty()) {
    const auto name = parse_samples_name(file);
    settings.task = name ? name->task : file.stem().string();
  }
  const std::string place = spec.name.empty() ? settings.task : spec.name;
  if (spec.type) settings.type = spec.type;
  if (!spec.metrics.is_null()) settings.metrics = parse_metrics(spec.metrics, place + ": metrics");
  if (!spec.filters.is_null()) settings.filters = parse_filters(spec.filters, place + ": filters");
  if (spec.target_delimiter) settings.target_delimiter = *spec.target_delimiter;
  if (spec.repeats != 0) settings.repeats = spec.repeats;
  settings.gold_key = spec.gold_key;
  settings.gold_base = spec.gold_base;
  return settings;
}

// A file beside the samples, as a config that names them so would name it.
std::string beside(const std::string& samples, const std::filesystem::path& file) {
  return (std::filesystem::path(samples).parent_path() / file.filename()).generic_string();
}

std::vector<std::string> metric_names(const TaskSettings& settings) {
  std::vector<std::string> names;
  for (const MetricSpec& metric : settings.metrics) names.push_back(metric.name);
  return names;
}

// Why no results file was read.
std::string why_unstated(const std::filesystem::path& samples) {
  const auto name = parse_samples_name(samples);
  if (!name) return "the samples' name is not samples_<task>_<date>.jsonl, so no results file belongs to it";
  const std::string results = results_beside(samples, *name).filename().string();
  return std::filesystem::exists(samples.parent_path() / results)
             ? fmt::format("{} beside the samples has no config of the task '{}'", results, name->task)
             : fmt::format("no {} stands beside the samples", results);
}

// The documents of each filter, so that none is missing or there twice.
class FilterRows {
 public:
  // Whether the row is of the first filter.
  bool add(const std::string& filter, std::int64_t document, const OrderedJson& row, std::int64_t line,
           const std::string& place) {
    if (names_.empty() || rows_.find(filter) == rows_.end()) names_.push_back(filter);
    const auto [before, added] =
        rows_[filter].emplace(document, Row{line, std::hash<std::string>()(row.at("arguments").dump())});
    if (!added)
      throw DataError(fmt::format("{}: doc_id: found {} again (line {} has it), expected each document once a filter",
                                  place, document, before->second.line));
    return filter == names_.front();
  }
  void check(const std::string& file) const {
    const Rows& first = rows_.at(names_.front());
    for (const std::string& name : names_) {
      if (rows_.at(name).size() != first.size())
        throw DataError(fmt::format("{}: found {} documents under the filter '{}', expected {} as under '{}'", file,
                                    rows_.at(name).size(), name, first.size(), names_.front()));
      for (const auto& [document, row] : rows_.at(name)) check(document, row, first, file);
    }
  }
  const std::vector<std::string>& names() const { return names_; }

 private:
  struct Row {
    std::int64_t line = 0;
    std::size_t arguments = 0;  // a hash of what the model was asked
  };
  using Rows = std::map<std::int64_t, Row>;  // by document

  // Filters see the same answers.
  void check(std::int64_t document, const Row& row, const Rows& first, const std::string& file) const {
    const auto same = first.find(document);
    if (same == first.end())
      throw DataError(fmt::format("{}: line {}: doc_id: found {}, expected a document of the filter '{}'", file,
                                  row.line, document, names_.front()));
    if (same->second.arguments != row.arguments)
      throw DataError(fmt::format("{}: line {}: arguments: found others than in line {}, expected those of document {}",
                                  file, row.line, same->second.line, document));
  }

  std::vector<std::string> names_;
  std::map<std::string, Rows> rows_;
};

// Keys that say nothing about such rows would be taken for ones that do.
void refuse_idle_keys(const TaskSourceSpec& spec, const TaskSettings& settings, bool harness, const std::string& file) {
  const auto refuse_key = [&](const char* key, const char* where) {
    throw DataError(fmt::format("{}: {}: means nothing for {}; expected no such key", file, key, where));
  };
  if (!harness && !spec.gold_key.empty()) refuse_key("gold_key", "plain rows, which name the answer");
  if (!harness && !spec.results.empty()) refuse_key("results", "plain rows, which are no samples of the harness's");
  if (spec.repeats != 0 && settings.type != RequestType::generate_until)
    refuse_key("repeats", "tasks that generate nothing");
}

// Filters that responses go through: those that the rows name must be described.
void check_filters(const TaskSettings& settings, const std::vector<std::string>& named, const std::string& file) {
  if (settings.type != RequestType::generate_until) return;
  for (const std::string& name : named) {
    bool known = settings.filters.empty() && name == default_filter;
    for (const FilterSpec& filter : settings.filters) known = known || filter.name == name;
    if (!known)
      throw DataError(
          fmt::format("{}: what the filter '{}' does is not said; expected the harness's results file beside "
                      "the samples (or results: FILE), or filters: [...] in the task's config",
                      file, name));
  }
}

}  // namespace

struct TaskSource::Contents {
  TaskSourceSpec spec;
  std::filesystem::path file;
  TaskSettings initial;   // before the first row
  TaskSettings settings;  // after it
  std::string name, sha256;
  std::string results;  // the results file that states the settings, as `spec` would name it; empty: none
  bool harness = true;
  std::int64_t documents = 0, requests = 0;
};

// A place in the file, with the reader that has seen all rows before it.
struct TaskSource::Cursor {
  explicit Cursor(const std::filesystem::path& path) : file(path) {}

  // The next document, or nothing at the end. `on_row` hears of every row of the harness's form, and says whether it is
  // of the filter that counts.
  template <typename OnRow>
  std::optional<TaskDocument> next(const TaskSettings& initial, OnRow on_row) {
    while (file.next(line)) {
      const std::string place = file.place();
      const OrderedJson row = read_json_row(line, place);
      if (std::holds_alternative<std::monostate>(reader)) {
        if (is_harness_sample(row))
          reader.emplace<HarnessSampleReader>(initial);
        else
          reader.emplace<PlainTaskReader>(initial);
      }
      if (auto* plain = std::get_if<PlainTaskReader>(&reader)) {
        if (is_harness_sample(row))
          throw DataError(place + ": a row of the harness's; expected a plain one, as the first row is");
        return plain->read(row, documents++, file.line_number(), place);
      }
      if (!is_harness_sample(row))
        throw DataError(place +
                        ": found no doc_id and arguments; expected a row of the harness's, as the first row is");
      if (!on_row(row, file.line_number(), place)) continue;
      ++documents;
      return std::get<HarnessSampleReader>(reader).read(row, file.line_number(), place);
    }
    return std::nullopt;
  }

  const TaskSettings& settings() const {
    const auto* harness = std::get_if<HarnessSampleReader>(&reader);
    return harness != nullptr ? harness->settings() : std::get<PlainTaskReader>(reader).settings();
  }

  JsonlFile file;
  std::string line;
  std::variant<std::monostate, HarnessSampleReader, PlainTaskReader> reader;
  std::int64_t documents = 0;
  std::optional<std::string> filter;  // the first row's
};

TaskSource::TaskSource(std::shared_ptr<const Contents> contents) : contents_(std::move(contents)) {}
TaskSource::TaskSource(const TaskSource& other)
    : contents_(other.contents_), next_document_(other.next_document_) {}  // finds its place when it is asked
TaskSource& TaskSource::operator=(const TaskSource& other) {
  if (this != &other) *this = TaskSource(other);
  return *this;
}

TaskSource TaskSource::open(const TaskSourceSpec& spec, const std::filesystem::path& root) {
  auto contents = std::make_shared<Contents>();
  contents->spec = spec;
  contents->file = root / spec.path;
  const std::string file = contents->file.string();
  Cursor cursor(contents->file);
  contents->sha256 = datasets::sha256_file(contents->file);
  if (!spec.sha256.empty() && spec.sha256 != contents->sha256)
    throw DataError(fmt::format("{}: sha256 is {}, expected {}", file, contents->sha256, spec.sha256));
  const auto stated =
      read_harness_settings(contents->file, spec.results.empty() ? std::filesystem::path() : root / spec.results);
  if (stated) contents->results = spec.results.empty() ? beside(spec.path, stated->file) : spec.results;
  contents->initial = settings_for(spec, contents->file, stated);
  FilterRows rows;
  const auto on_row = [&](const OrderedJson& row, std::int64_t line, const std::string& place) {
    const auto id = as_integer(member(row, "doc_id", place), place + ": doc_id", 0, std::int64_t{1} << 53);
    return rows.add(filter_of(row, place), id, row, line, place);
  };
  while (const auto document = cursor.next(contents->initial, on_row)) {
    if (spec.max_documents != 0 && contents->documents == spec.max_documents) continue;  // the rest is checked, too
    ++contents->documents;
    contents->requests += static_cast<std::int64_t>(document->requests.size());
  }
  if (contents->documents == 0) throw DataError(file + ": holds no document; expected one JSON object a line");
  contents->settings = cursor.settings();
  contents->harness = !rows.names().empty();
  refuse_idle_keys(spec, contents->settings, contents->harness, file);
  if (contents->harness) {
    rows.check(file);
    check_filters(contents->settings, rows.names(), file);
  }
  contents->name = spec.name.empty() ? contents->settings.task : spec.name;
  return TaskSource(std::move(contents));
}

const TaskSourceSpec& TaskSource::spec() const { return contents_->spec; }
const TaskSettings& TaskSource::settings() const { return contents_->settings; }
const std::string& TaskSource::name() const { return contents_->name; }
bool TaskSource::is_harness() const { return contents_->harness; }
std::int64_t TaskSource::document_count() const { return contents_->documents; }
std::int64_t TaskSource::request_count() const { return contents_->requests; }
const std::string& TaskSource::sha256() const { return contents_->sha256; }

std::vector<std::string> TaskSource::warnings() const {
  if (!is_harness() || !contents_->results.empty()) return {};
  std::vector<std::string> assumed;
  if (spec().metrics.is_null())
    assumed.push_back(
        fmt::format("metrics {} without options (such as ignore_case)", fmt::join(metric_names(settings()), ", ")));
  if (spec().filters.is_null() && settings().type == RequestType::generate_until) assumed.emplace_back("no filters");
  if (assumed.empty()) return {};
  return {
      fmt::format("{}, so what the harness judges the task by is not known; taken for granted: type {}, {}. Put "
                  "the results file there, name it (results: FILE), or state type, metrics and filters",
                  why_unstated(contents_->file), name_of(*settings().type), fmt::join(assumed, ", "))};
}

nlohmann::json TaskSource::describe() const {
  nlohmann::json filters = nlohmann::json::array();
  for (const FilterSpec& filter : settings().filters) filters.push_back(filter.name);
  if (filters.empty()) filters.push_back(std::string(default_filter));
  nlohmann::json description = {{"name", name()},
                                {"path", spec().path},
                                {"form", is_harness() ? "lm_eval samples" : "plain"},
                                {"type", name_of(*settings().type)},
                                {"documents", document_count()},
                                {"requests", request_count()},
                                {"sha256", sha256()},
                                {"settings_sha256", fingerprint(settings())},
                                {"metrics", metric_names(settings())},
                                {"filters", filters}};
  if (is_harness())
    description["results"] = contents_->results.empty() ? nlohmann::json() : nlohmann::json(contents_->results);
  return description;
}

std::optional<TaskDocument> TaskSource::next() {
  if (next_document_ >= contents_->documents) return std::nullopt;
  if (!cursor_) cursor_ = std::make_shared<Cursor>(contents_->file);
  const auto on_row = [&](const OrderedJson& row, std::int64_t /*line*/, const std::string& place) {
    const std::string filter = filter_of(row, place);
    if (!cursor_->filter) cursor_->filter = filter;
    return filter == *cursor_->filter;
  };
  std::optional<TaskDocument> document;
  do {
    document = cursor_->next(contents_->initial, on_row);
    if (!document)
      throw DataError(fmt::format("{}: ends after {} documents, expected {}: it has changed since it was opened",
                                  contents_->file.string(), cursor_->documents, contents_->documents));
  } while (cursor_->documents <= next_document_);
  ++next_document_;
  return document;
}

void TaskSource::rewind() {
  next_document_ = 0;
  cursor_.reset();
}

}  // namespace replayeval::tasks
