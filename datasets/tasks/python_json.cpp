#include "datasets/tasks/python_json.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <unordered_set>
#include <utility>
#include <vector>

#include "datasets/tasks/json_member.h"
#include "datasets/tasks/python_text.h"
#include "datasets/utf8.h"

namespace replayeval::tasks {
namespace {

constexpr std::array<std::string_view, 3> bare_words = {"NaN", "-Infinity", "Infinity"};
// What a bare word becomes on its way through a parser that knows none: a string that begins with a zero byte and a
// number, for the case that a text begins so itself.
std::string stand_in_value(int number) { return std::string(1, '\0') + fmt::format("bare{}:", number); }

struct StandIns {
  std::string text;
  std::int64_t count = 0;
};

// `text` with stand-ins for the bare words that are not within strings.
StandIns with_stand_ins(std::string_view text, int number) {
  const std::string stand_in = fmt::format("\"\\u0000bare{}:", number);
  StandIns result;
  std::string& replaced = result.text;
  replaced.reserve(text.size() + 64);
  bool in_string = false;
  for (std::size_t at = 0; at < text.size();) {
    const char byte = text[at];
    if (in_string && byte == '\\') {
      replaced += text.substr(at, 2);
      at += 2;
      continue;
    }
    if (byte == '"') in_string = !in_string;
    std::string_view word;
    if (!in_string && (byte == 'N' || byte == 'I' || byte == '-'))
      for (const std::string_view candidate : bare_words)
        if (text.substr(at, candidate.size()) == candidate) word = candidate;
    if (word.empty()) {
      replaced += byte;
      ++at;
    } else {
      replaced.append(stand_in).append(word).append("\"");
      at += word.size();
      ++result.count;
    }
  }
  return result;
}

// Returns how many. Iterative, as the depth of a value is the file's choice.
std::int64_t restore_bare_words(OrderedJson& document, int number) {
  const std::string stand_in = stand_in_value(number);
  std::int64_t restored = 0;
  std::vector<OrderedJson*> left = {&document};
  while (!left.empty()) {
    OrderedJson& value = *left.back();
    left.pop_back();
    if (value.is_structured()) {
      for (OrderedJson& element : value) left.push_back(&element);
    } else if (value.is_string()) {
      const auto& text = value.get_ref<const std::string&>();
      if (!text.starts_with(stand_in)) continue;
      ++restored;
      const std::string word = text.substr(stand_in.size());
      const double infinity = std::numeric_limits<double>::infinity();
      value = word == "NaN" ? std::numeric_limits<double>::quiet_NaN() : word == "Infinity" ? infinity : -infinity;
    }
  }
  return restored;
}

// Refuses an object that has a key twice, of which a reader would pass over one.
class DistinctKeys {
 public:
  explicit DistinctKeys(const std::string& place) : place_(place) {}

  bool operator()(int /*depth*/, OrderedJson::parse_event_t event, OrderedJson& value) {
    using Event = OrderedJson::parse_event_t;
    if (event == Event::object_start) open_->emplace_back();
    if (event == Event::object_end) open_->pop_back();
    if (event == Event::key && !open_->back().insert(value.get<std::string>()).second)
      refuse(value, place_, "each key of an object once: this one stands there twice");
    return true;
  }

 private:
  std::string place_;
  // Of the objects around the place that is read. Shared, as the parser copies its callback.
  std::shared_ptr<std::vector<std::unordered_set<std::string>>> open_ =
      std::make_shared<std::vector<std::unordered_set<std::string>>>();
};

OrderedJson parse(std::string_view text, const std::string& place) {
  return OrderedJson::parse(text, DistinctKeys(place));
}

// Text that begins like a stand-in is told from one by the number of them.
OrderedJson parse_with_bare_words(std::string_view text, const std::string& place) {
  for (int number = 0;; ++number) {
    const StandIns replaced = with_stand_ins(text, number);
    OrderedJson document = parse(replaced.text, place);
    if (restore_bare_words(document, number) == replaced.count) return document;
  }
}

void append_string(std::string_view text, std::string& out) {
  out += '"';
  for (const char byte : text) {
    switch (byte) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\b':
        out += "\\b";
        break;
      case '\f':
        out += "\\f";
        break;
      default:
        if (static_cast<unsigned char>(byte) < 0x20)
          out += fmt::format("\\u{:04x}", static_cast<unsigned>(byte));
        else
          out += byte;
    }
  }
  out += '"';
}

void append_float(double value, std::string& out) {
  if (std::isnan(value))
    out += "NaN";
  else if (std::isinf(value))
    out += value < 0 ? "-Infinity" : "Infinity";
  else
    out += python_float(value);
}

class Writer {
 public:
  explicit Writer(int indent) : indent_(indent) {}

  void append(const OrderedJson& value, int depth) {
    if (value.is_object() || value.is_array())
      append_structured(value, depth);
    else if (value.is_string())
      append_string(value.get_ref<const std::string&>(), out_);
    else if (value.is_number_float())
      append_float(value.get<double>(), out_);
    else
      out_ += value.dump();  // whole numbers, true, false, null
  }
  std::string take() { return std::move(out_); }

 private:
  void append_structured(const OrderedJson& value, int depth) {
    const bool object = value.is_object();
    out_ += object ? '{' : '[';
    bool first = true;
    for (const auto& item : value.items()) {
      if (!first) out_ += indent_ < 0 ? ", " : ",";
      first = false;
      new_line(depth + 1);
      if (object) {
        append_string(item.key(), out_);
        out_ += ": ";
      }
      append(item.value(), depth + 1);
    }
    if (!first) new_line(depth);
    out_ += object ? '}' : ']';
  }
  void new_line(int depth) {
    if (indent_ < 0) return;
    out_ += '\n';
    out_.append(static_cast<std::size_t>(depth) * static_cast<std::size_t>(indent_), ' ');
  }

  int indent_;
  std::string out_;
};

constexpr int max_depth = 256;  // brackets within one another; json.dumps of Python itself stops at about 1,000

// Brackets that are open at the end; fewer than 0 where more are closed.
int check_depth(std::string_view text, const std::string& place) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char byte = text[at];
    if (in_string && byte == '\\') {
      ++at;
    } else if (byte == '"') {
      in_string = !in_string;
    } else if (!in_string && (byte == '[' || byte == '{')) {
      if (++depth > max_depth)
        throw datasets::DataError(
            fmt::format("{}: byte {}: nested more than {} deep; expected less", place, at + 1, max_depth));
    } else if (!in_string && (byte == ']' || byte == '}')) {
      --depth;
    }
  }
  return depth;
}

}  // namespace

OrderedJson read_python_json(std::string_view text, const std::string& place) {
  (void)check_depth(text, place);
  try {
    const bool bare = text.find("NaN") != std::string_view::npos || text.find("Infinity") != std::string_view::npos;
    return bare ? parse_with_bare_words(text, place) : parse(text, place);
  } catch (const nlohmann::json::parse_error& error) {
    throw datasets::DataError(fmt::format("{}: byte {}: not JSON; expected one value in UTF-8", place, error.byte));
  } catch (const nlohmann::json::exception&) {
    throw datasets::DataError(fmt::format("{}: a number out of range; expected what a double can hold", place));
  }
}

OrderedJson read_json_row(std::string_view line, const std::string& place) {
  if (const auto fault = datasets::find_utf8_fault(line))
    throw datasets::DataError(
        fmt::format("{}: byte {}: found {}, expected UTF-8", place, fault->offset + 1, fault->found));
  if (check_depth(line, place) > 0)
    throw datasets::DataError(place + ": ends inside a value; expected JSON Lines, one document a line");
  OrderedJson row = read_python_json(line, place);
  if (!row.is_object()) refuse(row, place, "an object");
  return row;
}

std::string write_python_json(const OrderedJson& value, int indent) {
  Writer writer(indent);
  writer.append(value, 0);
  return writer.take();
}

}  // namespace replayeval::tasks
