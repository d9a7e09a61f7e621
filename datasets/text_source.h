// Text from files: plain or gzip, one document a file or several, checked and hashed before the first one is used.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "datasets/error.h"

namespace replayeval::datasets {

struct TextSourceSpec {
  std::string name;  // as reports name it; default: the last part of `path` without its ending
  std::string path;  // a file or a glob (* ? [...]), relative to the root that open() gets
  std::string
      separator;       // PCRE2 pattern that a whole line must match to part two documents; empty: one document a file
  std::string sha256;  // expected hash of the source (see TextSource::sha256); empty: not pinned
  std::int64_t max_documents = 0;            // 0: all
  std::int64_t max_tokens = 0;               // scored tokens taken from this source; 0: all
  std::optional<std::uint64_t> sample_seed;  // with max_documents: a random sample of that size, in text order;
                                             // without a seed, the first max_documents
  std::string separator_place;  // "FILE:LINE:COL" of the separator, for messages; empty: they name the source
};

// {path: ..., name?, separator?, sha256?, max_documents?, max_tokens?, sample_seed?}, or a string: the path alone.
// `place` names the object in messages, e.g. "demo.yaml: workloads[0].data[1]". Throws DataError on unknown keys and
// wrong types.
TextSourceSpec parse_text_source(const nlohmann::json& object, const std::string& place);
nlohmann::json to_json(const TextSourceSpec& spec);

struct Document {
  std::string source;
  std::string id;    // the file's name without its ending; with a separator: that and "#3", counted from 0
  std::string text;  // well-formed UTF-8, never blank, unchanged (line ends included)
};

// Reads one file at a time; memory holds one file's text at most. Files come in bytewise order of their path. A copy
// has a place in the text of its own.
class TextSource {
 public:
  // Reads every file once to check and hash it. Throws DataError: no file matches, a file is unreadable, empty or
  // blank, not UTF-8 (file, byte offset, bytes found), truncated or damaged gzip, a bad separator, a hash other than
  // the pinned one.
  static TextSource open(const TextSourceSpec& spec, const std::filesystem::path& root);

  const TextSourceSpec& spec() const;
  const std::vector<std::filesystem::path>& files() const;
  std::int64_t document_count() const;  // after max_documents
  // Of the text, after decompression. One file: `sha256sum FILE` of its text. Several: of the lines "<hash>  <file
  // name>\n" that sha256sum prints for them in order, so `cd FOLDER && LC_ALL=C sha256sum GLOB | sha256sum` shows the
  // same.
  const std::string& sha256() const;
  nlohmann::json describe() const;  // {name, path, files, documents, bytes, sha256}, for results.json

  std::optional<Document> next();  // the same documents in the same order every time
  void rewind();

 private:
  struct Contents;
  explicit TextSource(std::shared_ptr<const Contents> contents);
  void read_next_file();

  std::shared_ptr<const Contents> contents_;
  std::size_t next_file_ = 0;
  std::vector<Document> pending_;  // of the file read last, the next one at the back
  std::int64_t next_document_ = 0;
};

// The bytes of a file, decompressed if it begins as gzip does (RFC 1952; by content, not by name; several members are
// read on). Throws DataError naming the file: unreadable, truncated, damaged, or trailing bytes that are not gzip.
std::string read_text_file(const std::filesystem::path& file);

}  // namespace replayeval::datasets
