// Adds up what a churn workload compares: by level, event, arm and batch.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "eval/comparator/churn/churn_script.h"
#include "reports/results.h"

namespace replayeval {

enum class ChurnLevel : std::uint8_t { mixer, prefix, model };

// How one token's output came about.
struct TokenStory {
  ChurnKind came = ChurnKind::admission;
  bool padded = false, reordered = false;  // its call
};

// Of each token: whether its values differ from the undisturbed run's in any bit, and the largest difference.
struct TokenDifferences {
  std::vector<bool> differing;
  std::vector<double> deviation;  // infinite where one of two is not a number
};

// found, expected: [tokens, ...], one shape and type.
TokenDifferences compare_tokens(const at::Tensor& found, const at::Tensor& expected);

class ChurnTally {
 public:
  explicit ChurnTally(std::int64_t batch) : batch_(batch) {}

  void add(ChurnLevel level, std::size_t arm, const std::vector<TokenStory>& stories,
           const TokenDifferences& differences);
  void add(ChurnLevel level, std::size_t arm, ChurnKind event, bool differs, double deviation);

  double max_deviation(ChurnLevel level, std::size_t arm) const;
  // Without bounds. `names`: of the arms; arms behind them are left out.
  std::vector<reports::ChurnCheck> checks(const std::vector<std::string>& names) const;

 private:
  struct Sum {
    std::int64_t compared = 0, differing = 0;
    double deviation = 0.0;
  };

  std::int64_t batch_;
  std::map<std::tuple<ChurnLevel, ChurnKind, std::size_t>, Sum> sums_;
};

std::string_view churn_level_name(ChurnLevel level);

}  // namespace replayeval
