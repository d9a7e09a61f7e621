// How much independent evidence answers are that come in items: several questions of one document, repeats of one
// prompt.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace replayeval::metrics {

// Values added up by item, in the order in which the items first appear.
struct ItemSums {
  std::vector<double> sum, count;  // [items]
  double total = 0.0, n = 0.0;     // over all items

  double mean() const { return total / n; }
  std::int64_t items() const { return static_cast<std::int64_t>(sum.size()); }
};

// item[i] names the item of value i; entries of one item need not be adjacent. Throws std::invalid_argument on no
// values or on arrays of unequal length.
ItemSums sum_by_item(std::span<const double> values, std::span<const std::int64_t> item);

// The number of independent values whose mean is as uncertain as this one: n over the design effect, which is the
// variance of the ratio estimator over items (Cochran 1977, 6.4) over `independent_variance` (that of the mean, were
// all values independent), reduced for the few degrees of freedom that items leave (Korn & Graubard 1998). Never above
// n; n where every item has one value. Where the variance is zero, nothing shows how the values of an item hang
// together: then the number of items, the least it can be when an item's values are all one.
double effective_size(const ItemSums& sums, double independent_variance, double confidence);

}  // namespace replayeval::metrics
