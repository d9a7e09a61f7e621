// A few thousand mutations of valid files, the same ones every time, without libFuzzer: what `make test` and `make
// asan` see of fuzzing. `make fuzz` goes far deeper.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "tests/fuzz/targets.h"

namespace replayeval::fuzz {
namespace {

std::vector<std::string> seeds_of(std::string_view target) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator("tests/fuzz/seeds/" + std::string(target)))
    files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::vector<std::string> seeds;
  for (const auto& file : files) {
    std::ifstream in(file, std::ios::binary);
    seeds.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  return seeds;
}

// Words that get past a parser's first looks.
const std::vector<std::string>& words() {
  static const std::vector<std::string> all = {"{",
                                               "}",
                                               "[",
                                               "]",
                                               "\"",
                                               ",",
                                               ":",
                                               "null",
                                               "true",
                                               "-1",
                                               "0",
                                               "1e999",
                                               "4294967296",
                                               "9223372036854775807",
                                               "18446744073709551615",
                                               "NaN",
                                               "-Infinity",
                                               "{\"__float__\":\"NaN\"}",
                                               "\\u0000",
                                               "\"\"",
                                               "[]",
                                               "{}",
                                               std::string(1, '\0'),
                                               "\xff",
                                               "[[[[[[[["};
  return all;
}

std::string mutated(std::string text, const std::vector<std::string>& seeds, std::mt19937& random) {
  const auto below = [&](std::size_t bound) { return bound == 0 ? 0 : random() % bound; };
  for (std::size_t changes = 1 + below(4); changes > 0; --changes) {
    const std::size_t at = below(text.size()), length = std::min(text.size() - at, 1 + below(16));
    switch (below(5)) {
      case 0:
        if (!text.empty()) text[at] = static_cast<char>(below(256));
        break;
      case 1:
        text.erase(at, length);
        break;
      case 2:
        text.insert(at, words()[below(words().size())]);
        break;
      case 3:
        text.insert(at, text.substr(below(text.size()), length));
        break;
      default: {  // the head of this, the tail of another
        const std::string& other = seeds[below(seeds.size())];
        text = text.substr(0, at) + other.substr(below(other.size()));
      }
    }
  }
  return text;
}

class Fuzz : public ::testing::TestWithParam<Target> {};

TEST_P(Fuzz, MutationsOfValidFiles) {
  const std::vector<std::string> seeds = seeds_of(GetParam().name);
  ASSERT_FALSE(seeds.empty());
  std::mt19937 random(7);
  for (const std::string& seed : seeds) GetParam().run(std::as_bytes(std::span(seed)));
  for (int i = 0; i < 2000; ++i) {
    const std::string input = mutated(seeds[random() % seeds.size()], seeds, random);
    GetParam().run(std::as_bytes(std::span(input)));
  }
}

INSTANTIATE_TEST_SUITE_P(All, Fuzz, ::testing::ValuesIn(targets().begin(), targets().end()),
                         [](const auto& target) { return std::string(target.param.name); });

}  // namespace
}  // namespace replayeval::fuzz
