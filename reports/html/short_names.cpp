#include "reports/html/short_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "reports/html/svg/drawing.h"

namespace replayeval::reports::html {
namespace {

using Characters = std::vector<std::string>;  // of UTF-8 text

Characters characters_of(const std::string& text) {
  Characters characters;
  for (const char c : text) {
    const bool inside = (static_cast<unsigned char>(c) & 0xC0) == 0x80;
    if (inside && !characters.empty()) {
      characters.back() += c;
    } else {
      characters.emplace_back(1, c);
    }
  }
  return characters;
}

std::string joined(const Characters& characters, std::size_t begin, std::size_t end) {
  std::string text;
  for (std::size_t i = begin; i < end; ++i) text += characters[i];
  return text;
}

// How many bytes all of them begin with, up to the end of a word; none is left empty.
std::size_t shared_words(const std::set<std::string>& names) {
  if (names.size() < 2) return 0;
  const std::string &first = *names.begin(), &last = *names.rbegin();  // sorted: what these two share, all do
  const auto end = std::mismatch(first.begin(), first.end(), last.begin(), last.end()).first;
  const std::size_t joint = first.substr(0, static_cast<std::size_t>(end - first.begin())).find_last_of("-_ ./");
  return joint == std::string::npos ? 0 : joint + 1;
}

// `most` characters in all, of which a share stands before the "…".
std::string cut(const std::string& name, std::size_t most, double share) {
  const Characters characters = characters_of(name);
  if (characters.size() <= most) return name;
  const std::size_t kept = most - 1, head = static_cast<std::size_t>(share * static_cast<double>(kept));
  return joined(characters, 0, head) + "…" + joined(characters, characters.size() - (kept - head), characters.size());
}

std::map<std::string, std::string> shortened(const std::set<std::string>& names, std::size_t most) {
  const std::size_t shared = shared_words(names);
  std::map<std::string, std::string> result;
  for (const double share : std::array{0.5, 0.33, 0.67, 0.2, 0.8, 0.0}) {
    std::set<std::string> different;
    for (const std::string& name : names) {
      result[name] = cut(shared == 0 ? name : "…" + name.substr(shared), most, share);
      different.insert(result[name]);
    }
    if (different.size() == names.size()) return result;
  }
  constexpr std::size_t of_number = 4, least = 4;
  std::size_t number = 0;
  for (auto& [name, text] : result)
    text = fmt::format("{} ({})", cut(name, std::max(least, most - std::min(most, of_number)), 0.5), ++number);
  return result;
}

}  // namespace

std::vector<std::string> short_names(const std::vector<std::string>& names, double room) {
  if (std::all_of(names.begin(), names.end(), [&](const std::string& name) { return svg::width_of(name) <= room; }))
    return names;
  constexpr std::size_t least = 6;
  const auto most = std::max(least, static_cast<std::size_t>(std::max(0.0, room) / svg::character_width));
  const std::map<std::string, std::string> texts = shortened({names.begin(), names.end()}, most);
  std::vector<std::string> result;
  for (const std::string& name : names) result.push_back(texts.at(name));
  return result;
}

}  // namespace replayeval::reports::html
