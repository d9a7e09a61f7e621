#include "eval/checkpoint/json_text.h"

#include <array>
#include <cctype>
#include <fstream>
#include <iterator>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "datasets/error.h"
#include "datasets/regular_file.h"
#include "eval/checkpoint/checkpoint.h"

namespace replayeval {
namespace {

using nlohmann::json;

constexpr std::string_view float_key = "__float__";

// The three bare words that Python's json module writes for floats without a JSON spelling, longest first.
constexpr std::array<std::string_view, 3> float_words = {"-Infinity", "Infinity", "NaN"};

// The position just behind the string literal that starts at `begin`.
std::size_t skip_string(std::string_view text, std::size_t begin) {
  std::size_t i = begin + 1;
  while (i < text.size() && text[i] != '"') i += text[i] == '\\' ? 2 : 1;
  return std::min(i + 1, text.size());
}

// The bare float word at `i`, or "" if none stands there as a token of its own.
std::string_view float_word_at(std::string_view text, std::size_t i) {
  for (const std::string_view word : float_words) {
    if (!text.substr(i).starts_with(word)) continue;
    const std::size_t end = i + word.size();
    if (end == text.size() || std::isalnum(static_cast<unsigned char>(text[end])) == 0) return word;
  }
  return {};
}

// Rewrites bare float words, outside strings only, to transformers' object form, so that one later pass serves both.
std::string spell_floats_as_objects(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    if (text[i] == '"') {
      const std::size_t end = skip_string(text, i);
      out += text.substr(i, end - i);
      i = end;
    } else if (const std::string_view word = float_word_at(text, i); !word.empty()) {
      out.append("{\"").append(float_key).append("\":\"").append(word).append("\"}");
      i += word.size();
    } else if (std::isalpha(static_cast<unsigned char>(text[i])) != 0) {
      // Any other word (true, null, xInfinity) is copied whole, so that a float word is never found in its middle.
      do out += text[i++];
      while (i < text.size() && std::isalnum(static_cast<unsigned char>(text[i])) != 0);
    } else {
      out += text[i++];
    }
  }
  return out;
}

bool resolve_float(json& value) {
  if (!value.is_object() || value.size() != 1 || !value.contains(float_key)) return false;
  const json& word = value.at(std::string(float_key));
  if (word == "Infinity")
    value = std::numeric_limits<double>::infinity();
  else if (word == "-Infinity")
    value = -std::numeric_limits<double>::infinity();
  else if (word == "NaN")
    value = std::numeric_limits<double>::quiet_NaN();
  else
    return false;
  return true;
}

void resolve_floats(json& value) {
  if (resolve_float(value) || !value.is_structured()) return;
  for (json& child : value) resolve_floats(child);
}

// Recursion over a value follows its nesting, so that what a file may nest is bounded before there is a value.
constexpr int deepest = 100;
struct TooDeep {};

// Remembers the keys of every open object; nlohmann itself keeps the last of two equal keys in silence.
class DuplicateKeys {
 public:
  bool operator()(int depth, json::parse_event_t event, json& parsed) {
    if (depth > deepest) throw TooDeep();
    if (event == json::parse_event_t::object_start) open_.emplace_back();
    if (event == json::parse_event_t::object_end) open_.pop_back();
    if (event == json::parse_event_t::key && !open_.back().insert(parsed.get<std::string>()).second && found_.empty())
      found_ = parsed.get<std::string>();
    return true;
  }
  const std::string& found() const { return found_; }

 private:
  std::vector<std::set<std::string>> open_;
  std::string found_;
};

// nlohmann's message without its own prefix "[json.exception.parse_error.101] ".
std::string reason(const json::exception& error) {
  std::string text = error.what();
  if (const std::size_t end = text.find("] "); end != std::string::npos) text.erase(0, end + 2);
  for (char& c : text)
    if (c == '\n') c = ' ';
  return text;
}

}  // namespace

json parse_json_text(std::string_view text, const std::filesystem::path& file, std::string_view place) {
  const std::string where = file.string() + (place.empty() ? "" : ": " + std::string(place));
  DuplicateKeys keys;
  json value;
  try {
    value = json::parse(spell_floats_as_objects(text), [&keys](int depth, json::parse_event_t event, json& parsed) {
      return keys(depth, event, parsed);
    });
  } catch (const TooDeep&) {
    throw CheckpointError(where + ": values nested deeper than " + std::to_string(deepest) + "; expected fewer levels");
  } catch (const json::exception& error) {
    throw CheckpointError(where + ": not valid JSON: " + reason(error));
  }
  if (!keys.found().empty())
    throw CheckpointError(where + ": the key \"" + keys.found() + "\" stands twice in one object; expected once");
  resolve_floats(value);
  return value;
}

std::string read_text(const std::filesystem::path& file) {
  try {  // opening a folder succeeds, reading it throws without its name; some devices never end
    datasets::require_regular_file(file, "a JSON file");
  } catch (const datasets::DataError& error) {
    throw CheckpointError(error.what());
  }
  std::ifstream in(file, std::ios::binary);
  if (!in) throw CheckpointError(file.string() + ": cannot be opened; expected a JSON file");
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

json read_json_file(const std::filesystem::path& file) { return parse_json_text(read_text(file), file); }

std::string show(const json& value) {
  constexpr std::size_t longest = 60;
  std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  if (value.is_number_float() && text == "null") text = std::to_string(value.get<double>());  // inf, nan
  if (text.size() > longest) text = text.substr(0, longest) + "...";
  return text;
}

}  // namespace replayeval
