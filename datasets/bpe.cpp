#include "datasets/bpe.h"

#include <fmt/format.h>

#include <array>
#include <functional>
#include <limits>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "datasets/bpe_word.h"
#include "datasets/code_points.h"
#include "datasets/merge_table.h"

namespace replayeval::datasets {
namespace {

constexpr std::size_t longest_remembered = 256;      // bytes of a word
constexpr std::size_t longest_kept_space = 1 << 20;  // bytes of a word whose working space stays for the next one
constexpr std::size_t most_remembered = std::size_t{1} << 16;  // words; then the memory starts anew

struct StringHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};
template <typename Value>
using StringMap = std::unordered_map<std::string, Value, StringHash, std::equal_to<>>;

struct Vocabulary {
  StringMap<std::int32_t> ids;
  std::unordered_map<std::int32_t, const std::string*> tokens;  // keys of `ids`, which stay where they are
  std::int32_t largest = -1;

  std::int32_t find(std::string_view token) const {
    const auto found = ids.find(token);
    return found == ids.end() ? -1 : found->second;
  }
};

Vocabulary read_vocabulary(const JsonNode& node) {
  node.require_object();
  Vocabulary vocabulary;
  vocabulary.ids.reserve(node.value().size());
  vocabulary.tokens.reserve(node.value().size());
  for (const auto& [token, id] : node.value().items()) {
    if (!id.is_number_integer() || id < 0 || id > std::numeric_limits<std::int32_t>::max() - 1) {
      JsonNode(id, fmt::format("{}['{}']", node.place(), token)).refuse("a token id: a whole number from 0");
    }
    const auto number = id.get<std::int32_t>();
    const auto [entry, added] = vocabulary.ids.emplace(token, number);
    if (!vocabulary.tokens.emplace(number, &entry->first).second) {
      node.fail(fmt::format("'{}' and '{}' have the same id {}; expected an id of its own for each token",
                            *vocabulary.tokens.at(number), token, number));
    }
    vocabulary.largest = std::max(vocabulary.largest, number);
  }
  return vocabulary;
}

// "left right" or ["left", "right"].
std::pair<std::string_view, std::string_view> merge_parts(const JsonNode& merges, std::size_t index) {
  const nlohmann::json& merge = merges.value()[index];
  constexpr std::string_view expected = "two tokens: \"a b\" or [\"a\", \"b\"]";
  if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
    return {merge[0].get_ref<const std::string&>(), merge[1].get_ref<const std::string&>()};
  }
  if (!merge.is_string()) merges.element(index).refuse(expected);
  const std::string_view text = merge.get_ref<const std::string&>();
  const std::size_t space = text.find(' ');
  if (space == std::string_view::npos || text.find(' ', space + 1) != std::string_view::npos) {
    merges.element(index).refuse(expected);
  }
  return {text.substr(0, space), text.substr(space + 1)};
}

MergeTable read_merges(const JsonNode& merges, const Vocabulary& vocabulary, const std::string& prefix) {
  merges.require_array();
  MergeTable table(merges.value().size());
  std::string whole;
  for (std::size_t index = 0; index < merges.value().size(); ++index) {
    const auto [left, right] = merge_parts(merges, index);
    if (right.size() < prefix.size()) {
      merges.element(index).refuse(fmt::format("a second part that begins with the prefix '{}'", prefix));
    }
    whole.assign(left).append(right.substr(prefix.size()));
    for (const std::string_view token : {left, right, std::string_view(whole)}) {
      if (vocabulary.find(token) < 0) {
        merges.element(index).fail(fmt::format("'{}' is not in the vocabulary; expected a merge of its tokens", token));
      }
    }
    table.set(vocabulary.find(left), vocabulary.find(right),
              {.rank = static_cast<std::uint32_t>(index), .token = vocabulary.find(whole)});
  }
  return table;
}

std::array<std::int32_t, 256> byte_tokens(const Vocabulary& vocabulary) {
  std::array<std::int32_t, 256> tokens{};
  for (std::size_t byte = 0; byte < tokens.size(); ++byte)
    tokens[byte] = vocabulary.find(fmt::format("<0x{:02X}>", byte));
  return tokens;
}

void refuse_dropout(const JsonNode& model) {
  const auto dropout = model.find("dropout");
  if (dropout && !(dropout->value().is_number() && dropout->value() == 0)) {
    dropout->refuse("null or 0: with dropout, the same text has other ids each time");
  }
}

}  // namespace

struct Bpe::Encoder::Space {
  struct Ids {
    std::size_t begin = 0, count = 0;  // in `remembered_ids`
  };
  StringMap<Ids> remembered;
  std::vector<std::int32_t> remembered_ids;
  BpeWord word;
  std::string spelling;
};

struct Bpe::Impl {
  explicit Impl(const JsonNode& model)
      : place(model.place()),
        prefix(model.string_or("continuing_subword_prefix", "")),
        suffix(model.string_or("end_of_word_suffix", "")),
        unk_token(model.find("unk_token") ? std::optional(model.at("unk_token").string()) : std::nullopt),
        byte_fallback(model.boolean_or("byte_fallback", false)),
        fuse_unk(model.boolean_or("fuse_unk", false)),
        ignore_merges(model.boolean_or("ignore_merges", false)),
        vocabulary(read_vocabulary(model.at("vocab"))),
        merges(read_merges(model.at("merges"), vocabulary, prefix)),
        bytes(byte_tokens(vocabulary)) {
    refuse_dropout(model);
  }

  void add_unknown(BpeWord& word, std::int32_t& pending) const;
  bool add_bytes(std::string_view text, BpeWord& word) const;
  void add_characters(std::string_view text, std::string& spelling, BpeWord& word) const;
  void encode(std::string_view text, Encoder::Space& space, std::vector<std::int32_t>& ids) const;

  std::string place, prefix, suffix;
  std::optional<std::string> unk_token;
  bool byte_fallback, fuse_unk, ignore_merges;
  Vocabulary vocabulary;
  MergeTable merges;
  std::array<std::int32_t, 256> bytes;  // ids of <0x00> … <0xFF>; -1: none

  std::mutex lock;  // of what follows
  std::vector<std::unique_ptr<Encoder::Space>> idle_spaces;
};

// `pending` is the unknown token that stands for the last characters, and is added once something else follows.
void Bpe::Impl::add_unknown(BpeWord& word, std::int32_t& pending) const {
  if (!unk_token) return;
  const std::int32_t unknown = vocabulary.find(*unk_token);
  if (unknown < 0) {
    throw DataError(
        fmt::format("{}: a character is not in the vocabulary, and unk_token '{}' is not either", place, *unk_token));
  }
  if (pending >= 0 && !fuse_unk) word.add(pending);
  pending = unknown;
}

bool Bpe::Impl::add_bytes(std::string_view text, BpeWord& word) const {
  for (const char byte : text) {
    if (bytes[static_cast<unsigned char>(byte)] < 0) return false;
  }
  for (const char byte : text) word.add(bytes[static_cast<unsigned char>(byte)]);
  return true;
}

void Bpe::Impl::add_characters(std::string_view text, std::string& spelling, BpeWord& word) const {
  std::int32_t pending = -1;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t size = code_point_at(text, at).size;
    std::string_view character = text.substr(at, size);
    const bool prefixed = at > 0 && !prefix.empty(), suffixed = at + size == text.size() && !suffix.empty();
    if (prefixed || suffixed) {
      spelling.assign(prefixed ? prefix : "").append(character).append(suffixed ? suffix : "");
      character = spelling;
    }
    at += size;
    if (const std::int32_t id = vocabulary.find(character); id >= 0) {
      if (pending >= 0) word.add(pending);
      pending = -1;
      word.add(id);
    } else if (!byte_fallback || !add_bytes(character, word)) {
      add_unknown(word, pending);
    }
  }
  if (pending >= 0) word.add(pending);
}

void Bpe::Impl::encode(std::string_view text, Encoder::Space& space, std::vector<std::int32_t>& ids) const {
  if (ignore_merges) {
    if (const std::int32_t id = vocabulary.find(text); id >= 0) {
      ids.push_back(id);
      return;
    }
  }
  space.word.clear();
  add_characters(text, space.spelling, space.word);
  space.word.merge_all(merges);
  space.word.append_to(ids);
}

Bpe::Encoder::Encoder(const Bpe& bpe) : bpe_(bpe) {
  const std::lock_guard guard(bpe.impl_->lock);
  auto& idle = bpe.impl_->idle_spaces;
  if (idle.empty()) {
    space_ = std::make_unique<Space>();
  } else {
    space_ = std::move(idle.back());
    idle.pop_back();
  }
}

Bpe::Encoder::~Encoder() {
  const std::lock_guard guard(bpe_.impl_->lock);
  bpe_.impl_->idle_spaces.push_back(std::move(space_));
}

void Bpe::Encoder::append(std::string_view word, std::vector<std::int32_t>& ids) {
  Space& space = *space_;
  if (word.size() > longest_remembered) {
    bpe_.impl_->encode(word, space, ids);
    if (word.size() > longest_kept_space) space.word = BpeWord();
    return;
  }
  const auto found = space.remembered.find(word);
  if (found != space.remembered.end()) {
    const auto begin = space.remembered_ids.begin() + static_cast<std::ptrdiff_t>(found->second.begin);
    ids.insert(ids.end(), begin, begin + static_cast<std::ptrdiff_t>(found->second.count));
    return;
  }
  const std::size_t before = ids.size();
  bpe_.impl_->encode(word, space, ids);
  if (space.remembered.size() >= most_remembered) {
    space.remembered.clear();
    space.remembered_ids.clear();
  }
  space.remembered.emplace(word, Space::Ids{space.remembered_ids.size(), ids.size() - before});
  space.remembered_ids.insert(space.remembered_ids.end(), ids.begin() + static_cast<std::ptrdiff_t>(before), ids.end());
}

Bpe::Bpe(const JsonNode& model) : impl_(std::make_unique<Impl>(model)) {}
Bpe::~Bpe() = default;
Bpe::Bpe(Bpe&&) noexcept = default;
Bpe& Bpe::operator=(Bpe&&) noexcept = default;

std::optional<std::int32_t> Bpe::id(std::string_view token) const {
  const std::int32_t found = impl_->vocabulary.find(token);
  return found < 0 ? std::nullopt : std::optional(found);
}

const std::string* Bpe::token(std::int32_t id) const {
  const auto found = impl_->vocabulary.tokens.find(id);
  return found == impl_->vocabulary.tokens.end() ? nullptr : found->second;
}

std::int64_t Bpe::token_count() const { return static_cast<std::int64_t>(impl_->vocabulary.ids.size()); }
std::int32_t Bpe::largest_id() const { return impl_->vocabulary.largest; }

}  // namespace replayeval::datasets
