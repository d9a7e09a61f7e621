#include "datasets/normalizers.h"

#include <utf8proc.h>

#include <algorithm>
#include <new>
#include <utility>
#include <vector>

#include "datasets/code_points.h"
#include "datasets/nested_parts.h"
#include "datasets/pattern_node.h"

namespace replayeval::datasets {
namespace {

using CodePoints = std::vector<utf8proc_int32_t>;

// Below U+0300 nothing composes; below U+00C0 and U+00A0 nothing decomposes.
bool all_below(std::string_view text, char32_t bound) {
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint found = code_point_at(text, at);
    if (found.value >= bound) return false;
    at += found.size;
  }
  return true;
}

void append_decomposition(char32_t value, utf8proc_option_t options, CodePoints& buffer) {
  utf8proc_int32_t parts[32];  // the longest compatibility decomposition has 18 characters
  const utf8proc_ssize_t count =
      utf8proc_decompose_char(static_cast<utf8proc_int32_t>(value), parts, 32, options, nullptr);
  buffer.insert(buffer.end(), parts, parts + std::clamp<utf8proc_ssize_t>(count, 0, 32));
}

// Marks behind a base character in the order of their classes. utf8proc_decompose sorts by insertion, in quadratic
// time.
void order_marks(CodePoints& buffer) {
  const auto mark_class = [](utf8proc_int32_t value) { return utf8proc_get_property(value)->combining_class; };
  for (auto at = buffer.begin(); at != buffer.end();) {
    if (mark_class(*at) == 0) {
      ++at;
      continue;
    }
    const auto end = std::find_if(at, buffer.end(), [&](utf8proc_int32_t value) { return mark_class(value) == 0; });
    std::stable_sort(at, end, [&](auto left, auto right) { return mark_class(left) < mark_class(right); });
    at = end;
  }
}

// Unicode Standard Annex #15.
class NormalForm final : public Normalizer {
 public:
  NormalForm(bool compose, bool compatibility) : compose_(compose), compatibility_(compatibility) {}

  void apply(NormalizedText& text) const override {
    if (all_below(text.text, compatibility_ ? 0xA0 : compose_ ? 0x300 : 0xC0)) return;
    const int options =
        UTF8PROC_STABLE | (compatibility_ ? UTF8PROC_COMPAT : 0) | (compose_ ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE);
    CodePoints buffer;
    buffer.reserve(text.text.size());
    for (std::size_t at = 0; at < text.text.size();) {
      const CodePoint found = code_point_at(text.text, at);
      append_decomposition(found.value, static_cast<utf8proc_option_t>(options), buffer);
      at += found.size;
    }
    order_marks(buffer);
    if (compose_) {
      const auto size = static_cast<utf8proc_ssize_t>(buffer.size());
      buffer.resize(static_cast<std::size_t>(std::max<utf8proc_ssize_t>(
          0, utf8proc_normalize_utf32(buffer.data(), size, static_cast<utf8proc_option_t>(options)))));
    }
    text.text.clear();
    for (const utf8proc_int32_t value : buffer) append_utf8(static_cast<char32_t>(value), text.text);
  }

 private:
  bool compose_, compatibility_;
};

// Each character by itself: a capital sigma at a word's end becomes a σ.
class Lowercase final : public Normalizer {
 public:
  void apply(NormalizedText& text) const override {
    std::string lower;
    lower.reserve(text.text.size());
    for (std::size_t at = 0; at < text.text.size();) {
      const CodePoint found = code_point_at(text.text, at);
      at += found.size;
      if (found.value == 0x130) {  // İ alone has two characters in lower case
        lower += "i\xCC\x87";
      } else {
        append_utf8(static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(found.value))), lower);
      }
    }
    text.text = std::move(lower);
  }
};

class Strip final : public Normalizer {
 public:
  Strip(bool left, bool right) : left_(left), right_(right) {}

  void apply(NormalizedText& text) const override {
    std::size_t begin = 0, end = text.text.size();
    while (right_ && end > 0) {
      const CodePoint last = code_point_before(text.text, end);
      if (!is_white_space(last.value)) break;
      end -= last.size;
    }
    while (left_ && begin < end) {
      const CodePoint first = code_point_at(text.text, begin);
      if (!is_white_space(first.value)) break;
      begin += first.size;
    }
    if (begin > 0) text.at_start = false;
    text.text = text.text.substr(begin, end - begin);
  }

 private:
  bool left_, right_;
};

class StripAccents final : public Normalizer {
 public:
  void apply(NormalizedText& text) const override {
    std::string kept;
    for (std::size_t at = 0; at < text.text.size();) {
      const CodePoint found = code_point_at(text.text, at);
      if (!is_mark(found.value)) {
        kept += text.text.substr(at, found.size);
      } else if (at == 0) {
        text.at_start = false;
      }
      at += found.size;
    }
    text.text = std::move(kept);
  }
};

class Prepend final : public Normalizer {
 public:
  explicit Prepend(std::string prefix) : prefix_(std::move(prefix)) {}
  void apply(NormalizedText& text) const override {
    if (!text.text.empty()) text.text.insert(0, prefix_);
  }

 private:
  std::string prefix_;
};

class Replace final : public Normalizer {
 public:
  Replace(Regex pattern, std::string content) : pattern_(std::move(pattern)), content_(std::move(content)) {}

  void apply(NormalizedText& text) const override {
    std::vector<Match> matches;
    pattern_.find_all(text.text, matches);
    std::string replaced;
    replaced.reserve(text.text.size());
    for (const Match& match : matches) {
      if (match.is_match) {
        replaced += content_;
        if (match.begin == 0 && match.end > 0 && content_.empty()) text.at_start = false;
      } else {
        replaced.append(text.text, match.begin, match.end - match.begin);
      }
    }
    text.text = std::move(replaced);
  }

 private:
  Regex pattern_;
  std::string content_;
};

class Sequence final : public Normalizer {
 public:
  explicit Sequence(std::vector<std::unique_ptr<Normalizer>> parts) : parts_(std::move(parts)) {}
  void apply(NormalizedText& text) const override {
    for (const auto& part : parts_) part->apply(text);
  }

 private:
  std::vector<std::unique_ptr<Normalizer>> parts_;
};

std::unique_ptr<Normalizer> make(const JsonNode& node, int depth) {
  switch (node.at("type").choice(
      {"NFC", "NFD", "NFKC", "NFKD", "Lowercase", "Strip", "StripAccents", "Prepend", "Replace", "Sequence"})) {
    case 0:
      return std::make_unique<NormalForm>(true, false);
    case 1:
      return std::make_unique<NormalForm>(false, false);
    case 2:
      return std::make_unique<NormalForm>(true, true);
    case 3:
      return std::make_unique<NormalForm>(false, true);
    case 4:
      return std::make_unique<Lowercase>();
    case 5:
      return std::make_unique<Strip>(node.at("strip_left").boolean(), node.at("strip_right").boolean());
    case 6:
      return std::make_unique<StripAccents>();
    case 7:
      return std::make_unique<Prepend>(node.at("prepend").string());
    case 8:
      return std::make_unique<Replace>(regex_of(node.at("pattern")), node.at("content").string());
    default:
      return std::make_unique<Sequence>(make_parts<Normalizer>(node, "normalizers", depth, make));
  }
}

}  // namespace

std::unique_ptr<Normalizer> make_normalizer(const JsonNode& node) { return make(node, 0); }

}  // namespace replayeval::datasets
