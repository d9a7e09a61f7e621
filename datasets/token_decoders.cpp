#include "datasets/token_decoders.h"

#include <charconv>
#include <limits>
#include <optional>
#include <utility>

#include "datasets/byte_level.h"
#include "datasets/code_points.h"
#include "datasets/nested_parts.h"
#include "datasets/pattern_node.h"
#include "datasets/regex.h"
#include "datasets/utf8.h"

namespace replayeval::datasets {
namespace {

void replace_all(std::string& text, const std::string& what, const std::string& with) {
  if (what.empty()) return;
  std::string replaced;
  std::size_t from = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, from)) {
    replaced.append(text, from, at - from).append(with);
    from = at + what.size();
  }
  text = replaced.append(text, from);
}

class ByteLevelDecoder final : public TokenDecoder {
 public:
  void apply(std::vector<std::string>& tokens) const override {
    std::string bytes;
    for (const std::string& token : tokens) append_character_bytes(token, bytes);
    tokens = {replace_ill_formed(bytes)};
  }
};

// <0xHH> … to the characters that the bytes form; if a run of them is not UTF-8, a U+FFFD for each byte.
class ByteFallbackDecoder final : public TokenDecoder {
 public:
  void apply(std::vector<std::string>& tokens) const override {
    std::vector<std::string> decoded;
    std::string run;
    for (std::string& token : tokens) {
      if (const auto byte = byte_of(token)) {
        run += *byte;
        continue;
      }
      flush(run, decoded);
      decoded.push_back(std::move(token));
    }
    flush(run, decoded);
    tokens = std::move(decoded);
  }

 private:
  static std::optional<char> byte_of(const std::string& token) {
    if (token.size() != 6 || !token.starts_with("<0x") || token.back() != '>') return std::nullopt;
    const char* begin = token.data() + 3;
    const char* end = token.data() + 5;
    unsigned value = 0;
    const auto [stop, error] = std::from_chars(begin + (*begin == '+'), end, value, 16);
    return error == std::errc() && stop == end ? std::optional(static_cast<char>(value)) : std::nullopt;
  }

  static void flush(std::string& run, std::vector<std::string>& decoded) {
    if (run.empty()) return;
    if (find_utf8_fault(run)) {
      decoded.insert(decoded.end(), run.size(), "\xEF\xBF\xBD");
    } else {
      decoded.push_back(run);
    }
    run.clear();
  }
};

class MetaspaceDecoder final : public TokenDecoder {
 public:
  MetaspaceDecoder(std::string mark, bool prepended) : mark_(std::move(mark)), prepended_(prepended) {}
  void apply(std::vector<std::string>& tokens) const override {
    for (std::size_t i = 0; i < tokens.size(); ++i) replace_all(tokens[i], mark_, i == 0 && prepended_ ? "" : " ");
  }

 private:
  std::string mark_;
  bool prepended_;
};

class FuseDecoder final : public TokenDecoder {
 public:
  void apply(std::vector<std::string>& tokens) const override {
    std::string whole;
    for (const std::string& token : tokens) whole += token;
    tokens = {std::move(whole)};
  }
};

class ReplaceDecoder final : public TokenDecoder {
 public:
  ReplaceDecoder(Regex pattern, std::string content) : pattern_(std::move(pattern)), content_(std::move(content)) {}
  void apply(std::vector<std::string>& tokens) const override {
    std::vector<Match> matches;
    for (std::string& token : tokens) {
      matches.clear();
      pattern_.find_all(token, matches);
      std::string replaced;
      for (const Match& match : matches) {
        replaced += match.is_match ? content_ : token.substr(match.begin, match.end - match.begin);
      }
      token = std::move(replaced);
    }
  }

 private:
  Regex pattern_;
  std::string content_;
};

// Up to `start` of a character from each token's beginning, up to `stop` from its end.
class StripDecoder final : public TokenDecoder {
 public:
  StripDecoder(std::string character, std::size_t start, std::size_t stop)
      : character_(std::move(character)), start_(start), stop_(stop) {}
  void apply(std::vector<std::string>& tokens) const override {
    for (std::string& token : tokens) {
      std::size_t begin = 0, end = token.size();
      const std::size_t size = character_.size();
      for (std::size_t i = 0; i < start_ && token.compare(begin, size, character_) == 0; ++i) begin += size;
      for (std::size_t i = 0; i < stop_ && end >= begin + size && token.compare(end - size, size, character_) == 0;
           ++i) {
        end -= size;
      }
      token = token.substr(begin, end - begin);
    }
  }

 private:
  std::string character_;
  std::size_t start_, stop_;
};

// The end-of-word mark to a space, but for the last token.
class BpeDecoder final : public TokenDecoder {
 public:
  explicit BpeDecoder(std::string suffix) : suffix_(std::move(suffix)) {}
  void apply(std::vector<std::string>& tokens) const override {
    for (std::size_t i = 0; i < tokens.size(); ++i) replace_all(tokens[i], suffix_, i + 1 == tokens.size() ? "" : " ");
  }

 private:
  std::string suffix_;
};

class SequenceDecoder final : public TokenDecoder {
 public:
  explicit SequenceDecoder(std::vector<std::unique_ptr<TokenDecoder>> parts) : parts_(std::move(parts)) {}
  void apply(std::vector<std::string>& tokens) const override {
    for (const auto& part : parts_) part->apply(tokens);
  }

 private:
  std::vector<std::unique_ptr<TokenDecoder>> parts_;
};

const std::string& one_character(const JsonNode& node) {
  const std::string& text = node.string();
  if (text.empty() || code_point_at(text, 0).size != text.size()) node.refuse("one character");
  return text;
}

std::unique_ptr<TokenDecoder> make_metaspace(const JsonNode& node) {
  const auto scheme = node.find("prepend_scheme");
  const bool never = scheme && scheme->choice({"always", "never", "first"}) == 1;
  return std::make_unique<MetaspaceDecoder>(one_character(node.at("replacement")),
                                            !never && node.boolean_or("add_prefix_space", true));
}

std::unique_ptr<TokenDecoder> make_strip(const JsonNode& node) {
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  return std::make_unique<StripDecoder>(one_character(node.at("content")),
                                        static_cast<std::size_t>(node.at("start").integer(0, most)),
                                        static_cast<std::size_t>(node.at("stop").integer(0, most)));
}

std::unique_ptr<TokenDecoder> make(const JsonNode& node, int depth) {
  switch (node.at("type").choice(
      {"ByteLevel", "ByteFallback", "Metaspace", "Fuse", "Replace", "Strip", "BPEDecoder", "Sequence"})) {
    case 0:
      return std::make_unique<ByteLevelDecoder>();
    case 1:
      return std::make_unique<ByteFallbackDecoder>();
    case 2:
      return make_metaspace(node);
    case 3:
      return std::make_unique<FuseDecoder>();
    case 4:
      return std::make_unique<ReplaceDecoder>(regex_of(node.at("pattern")), node.at("content").string());
    case 5:
      return make_strip(node);
    case 6:
      return std::make_unique<BpeDecoder>(node.string_or("suffix", "</w>"));
    default:
      return std::make_unique<SequenceDecoder>(make_parts<TokenDecoder>(node, "decoders", depth, make));
  }
}

}  // namespace

std::unique_ptr<TokenDecoder> make_token_decoder(const JsonNode& node) { return make(node, 0); }

}  // namespace replayeval::datasets
