// Reads config.json key by key and accounts for every one of them: read, known to do nothing, or an error. A key that
// nobody looked at may change the model's arithmetic, so it is never passed over in silence.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "eval/checkpoint/checkpoint.h"

namespace replayeval {

class ConfigReader {
 public:
  explicit ConfigReader(const Checkpoint& checkpoint);

  // Each throws CheckpointError (file, key, expectation) on a value of another type or out of range; the forms without
  // a fallback throw when the key is missing. A null counts as missing.
  std::int64_t positive(const std::string& key);
  std::int64_t positive(const std::string& key, std::int64_t fallback);
  double number(const std::string& key, double fallback);  // may be +infinity, not NaN
  bool flag(const std::string& key, bool fallback);
  std::string word(const std::string& key, const std::string& fallback);
  std::vector<double> numbers(const std::string& key, const std::vector<double>& fallback);
  std::vector<std::string> words(const std::string& key);
  bool has(const std::string& key) const;                          // present and not null
  bool present(const std::string& key) const;                      // perhaps null, which some keys have a meaning for
  bool says(const std::string& key, const nlohmann::json& value);  // present with this very value
  // The object under `key`, empty where the key is missing or null. It accounts for its own keys (finish()), which
  // messages and the account call "key.inner". Lives no longer than the checkpoint.
  ConfigReader nested(const std::string& key);
  bool empty() const { return config_.empty(); }

  void ignore(const std::vector<std::string>& keys);  // known to change nothing here
  // `key` may only have `allowed` values (or be missing): other values would need arithmetic that is not implemented.
  void require(const std::string& key, const std::vector<nlohmann::json>& allowed, const std::string& why);
  [[noreturn]] void fail(const std::string& key, const std::string& expectation) const;
  // Of two names for one thing the one that config.json has, `key` if neither. Throws CheckpointError if it has both
  // and they say different things. The other one counts as ignored.
  std::string one_of(const std::string& key, const std::string& other);

  // Throws CheckpointError naming the first key that was neither read nor ignored, unless the checkpoint passes such
  // keys over.
  void finish() const;
  std::vector<std::string> keys_read() const;     // of those present, sorted
  std::vector<std::string> keys_ignored() const;  // of those present and not read, sorted

 private:
  ConfigReader(std::string file, std::string path, const nlohmann::json& config, bool passes_over_unknown_keys);

  const nlohmann::json* find(const std::string& key);
  std::vector<std::string> full_names(std::vector<std::string> keys) const;

  std::string file_;
  std::string path_;  // before each key in messages
  const nlohmann::json& config_;
  bool passes_over_unknown_keys_;
  std::set<std::string> read_, ignored_;
};

}  // namespace replayeval
