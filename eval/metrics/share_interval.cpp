#include "eval/metrics/share_interval.h"

#include <boost/math/special_functions/beta.hpp>

namespace replayeval::metrics {

Interval clopper_pearson(double right, double n, double confidence) {
  const double wrong = n - right, tail = (1.0 - confidence) / 2.0;
  return {right > 0.0 ? boost::math::ibeta_inv(right, wrong + 1.0, tail) : 0.0,
          wrong > 0.0 ? boost::math::ibetac_inv(right + 1.0, wrong, tail) : 1.0};
}

}  // namespace replayeval::metrics
