// Where numbers lie on a line of a drawing, and which of them to name.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace replayeval::reports::html::svg {

struct Tick {
  double value = 0.0;
  std::string label;
};

class Axis {
 public:
  // From `low` at `from` to `high` at `to` (units of the drawing; `to` may be the smaller). Where low equals high, the
  // range is widened. Ticks at 1, 2 or 5 times a power of ten, about `ticks` of them.
  static Axis linear(double low, double high, double from, double to, int ticks = 5);
  // low and high above zero, widened to powers of ten. Ticks at powers of ten, at most about `ticks` of them.
  static Axis logarithmic(double low, double high, double from, double to, int ticks = 6);
  // At given places: names of categories, buckets, powers of two.
  static Axis named(double low, double high, double from, double to, std::vector<Tick> ticks);

  double place(double value) const;  // clamped to the axis
  const std::vector<Tick>& ticks() const { return ticks_; }
  double widest_label() const;  // units of the drawing

 private:
  Axis(double low, double high, double from, double to, bool logarithmic);

  double low_, high_, from_, to_;
  bool logarithmic_;
  std::vector<Tick> ticks_;
};

// "10⁻⁶", and "0.01" or "100" where that is as short.
std::string power_of_ten(int exponent);

}  // namespace replayeval::reports::html::svg
