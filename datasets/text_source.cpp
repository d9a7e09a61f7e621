#include "datasets/text_source.h"

#include <fmt/format.h>
#include <glob.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <random>
#include <utility>

#include "datasets/documents.h"
#include "datasets/gzip.h"
#include "datasets/regular_file.h"
#include "datasets/sha256.h"
#include "datasets/utf8.h"

namespace replayeval::datasets {
namespace {

std::string read_bytes(const std::filesystem::path& file) {
  if (std::filesystem::is_directory(file)) {
    throw DataError(file.string() + ": is a folder; expected a file");
  }
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> stream(std::fopen(file.c_str(), "rb"), &std::fclose);
  if (!stream) {
    throw DataError(file.string() + ": cannot be opened: " + std::strerror(errno));
  }
  std::string bytes;
  std::error_code ignored;  // a pipe has no size, and needs none
  const auto size = std::filesystem::file_size(file, ignored);
  bytes.reserve(ignored ? 0 : size + 1);
  std::vector<char> buffer(1 << 20);
  while (const std::size_t count = std::fread(buffer.data(), 1, buffer.size(), stream.get())) {
    bytes.append(buffer.data(), count);
  }
  if (std::ferror(stream.get()) != 0) {
    throw DataError(file.string() + ": cannot be read: " + std::strerror(errno));
  }
  return bytes;
}

std::vector<std::filesystem::path> matching_files(const std::filesystem::path& pattern) {
  glob_t found{};
  const int status = ::glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found);  // its own order follows the locale
  std::vector<std::filesystem::path> files;
  for (std::size_t i = 0; i < found.gl_pathc; ++i) {
    files.emplace_back(found.gl_pathv[i]);
  }
  ::globfree(&found);
  if (status == GLOB_NOMATCH || (status == 0 && files.empty())) {
    throw DataError(pattern.string() +
                    ": no such file, and as a pattern it matches none; expected at least one text file");
  }
  if (status != 0) {
    throw DataError(pattern.string() + ": cannot be searched: " + std::strerror(errno));
  }
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.native() < b.native(); });
  return files;
}

std::string document_id(const std::filesystem::path& file) {
  const std::filesystem::path name = file.extension() == ".gz" ? file.stem() : file.filename();
  return name.stem().string();
}

void check_text(const std::filesystem::path& file, std::string_view text) {
  if (text.empty()) {
    throw DataError(file.string() + ": is empty; expected UTF-8 text");
  }
  if (const auto fault = find_utf8_fault(text)) {
    throw DataError(
        fmt::format("{}: byte {}: found {}, expected UTF-8 text", file.string(), fault->offset, fault->found));
  }
  if (is_blank(text)) {
    throw DataError(file.string() + ": holds nothing but white space; expected text");
  }
}

// Which of `count` documents are taken, in text order: the first ones or, with a seed, a sample without replacement by
// Fisher and Yates. mt19937_64 and the remainder below are the same on every platform; std::shuffle is not.
std::vector<std::int64_t> chosen_documents(std::int64_t count, const TextSourceSpec& spec) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  if (spec.max_documents == 0 || spec.max_documents >= count) {
    return order;
  }
  const auto taken = static_cast<std::size_t>(spec.max_documents);
  if (spec.sample_seed) {
    std::mt19937_64 random(*spec.sample_seed);
    for (std::size_t i = 0; i < taken; ++i) {
      std::swap(order[i], order[i + random() % (order.size() - i)]);  // bias below 2^-40 for any corpus
    }
  }
  order.resize(taken);
  std::sort(order.begin(), order.end());
  return order;
}

}  // namespace

struct TextSource::Contents {
  TextSourceSpec spec;
  std::vector<std::filesystem::path> files;
  std::vector<std::string> hashes;  // [files], of their text
  std::optional<LinePattern> separator;
  std::vector<std::int64_t> chosen;  // numbers of the documents taken, rising
  std::int64_t bytes = 0;            // of the text of all files
  std::string sha256;

  std::vector<std::string_view> split(std::string_view text, const std::filesystem::path& file) const {
    return separator ? split_documents(text, *separator, file.string()) : std::vector<std::string_view>{text};
  }
};

TextSource::TextSource(std::shared_ptr<const Contents> contents) : contents_(std::move(contents)) {}

TextSource TextSource::open(const TextSourceSpec& spec, const std::filesystem::path& root) {
  auto contents = std::make_shared<Contents>();
  contents->spec = spec;
  contents->files = matching_files((root / spec.path).lexically_normal());
  if (!spec.separator.empty()) {
    contents->separator.emplace(spec.separator,
                                spec.separator_place.empty() ? "text source " + spec.name : spec.separator_place);
  }
  std::int64_t documents = 0;
  std::string listing;  // as sha256sum prints it
  for (const auto& file : contents->files) {
    require_regular_file(file, "a file (a glob such as FOLDER/*.txt names many)");
    const std::string text = read_text_file(file);
    check_text(file, text);
    const std::size_t count = contents->split(text, file).size();
    if (count == 0) {
      throw DataError(file.string() + ": holds nothing but separator lines; expected text");
    }
    documents += static_cast<std::int64_t>(count);
    contents->bytes += static_cast<std::int64_t>(text.size());
    contents->hashes.push_back(sha256_hex(text));
    listing += fmt::format("{}  {}\n", contents->hashes.back(), file.filename().string());
  }
  contents->sha256 = contents->files.size() == 1 ? contents->hashes.front() : sha256_hex(listing);
  if (!spec.sha256.empty() && spec.sha256 != contents->sha256) {
    throw DataError(
        fmt::format("{}: sha256 of the text: expected {} (pinned), found {}",
                    contents->files.size() == 1 ? contents->files.front().string() : (root / spec.path).string(),
                    spec.sha256, contents->sha256));
  }
  contents->chosen = chosen_documents(documents, spec);
  return TextSource(std::move(contents));
}

const TextSourceSpec& TextSource::spec() const { return contents_->spec; }
const std::vector<std::filesystem::path>& TextSource::files() const { return contents_->files; }
std::int64_t TextSource::document_count() const { return static_cast<std::int64_t>(contents_->chosen.size()); }
const std::string& TextSource::sha256() const { return contents_->sha256; }

nlohmann::json TextSource::describe() const {
  nlohmann::json description = to_json(contents_->spec);
  description["files"] = contents_->files.size();
  description["documents"] = document_count();
  description["bytes"] = contents_->bytes;
  description["sha256"] = contents_->sha256;
  return description;
}

void TextSource::rewind() {
  next_file_ = 0;
  next_document_ = 0;
  pending_.clear();
}

void TextSource::read_next_file() {
  const std::size_t index = next_file_++;
  const std::filesystem::path& file = contents_->files[index];
  const std::string text = read_text_file(file);
  if (sha256_hex(text) != contents_->hashes[index]) {
    throw DataError(file.string() + ": has changed since it was opened; expected it to stay the same during a run");
  }
  std::int64_t number = 0;
  for (const std::string_view piece : contents_->split(text, file)) {
    if (std::binary_search(contents_->chosen.begin(), contents_->chosen.end(), next_document_++)) {
      const std::string id = document_id(file);
      pending_.push_back({.source = contents_->spec.name,
                          .id = contents_->separator ? fmt::format("{}#{}", id, number) : id,
                          .text = std::string(piece)});
    }
    ++number;
  }
  std::reverse(pending_.begin(), pending_.end());
}

std::optional<Document> TextSource::next() {
  while (pending_.empty()) {
    if (next_file_ == contents_->files.size()) {
      return std::nullopt;
    }
    read_next_file();
  }
  Document document = std::move(pending_.back());
  pending_.pop_back();
  return document;
}

std::string read_text_file(const std::filesystem::path& file) {
  std::string bytes = read_bytes(file);
  return is_gzip(bytes) ? decompress_gzip(bytes, file.string()) : bytes;
}

}  // namespace replayeval::datasets
