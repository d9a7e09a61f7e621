// Numbers as people read them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace replayeval::reports {

// `digits` significant digits, in fixed notation from 0.001 to 99999 and as 1.2e-06 elsewhere; zero is "0".
std::string significant(double value, int digits);
std::string with_sign(double value, int digits);  // the same with "+" before what is above zero

// Value and interval in one notation, with as many decimals as the interval's width justifies (two significant digits
// of its half width): "+0.1234 [+0.1200, +0.1270]". Without an interval: four significant digits. `scale` multiplies
// all, e.g. 100 for percent.
struct Spread {
  std::string value, low, high;  // low and high are empty without an interval
};
Spread spread(double value, const std::optional<double>& low, const std::optional<double>& high, double scale = 1.0);
std::string spread_text(const Spread& spread);  // "+0.1234 [+0.1200, +0.1270]", or the value alone

// `value` with as many decimals as two significant digits of its `uncertainty` (a standard error, half an interval's
// width) are worth, so that neither says more than the other. Where that is unknown or zero: `digits` significant ones.
std::string rounded(double value, const std::optional<double>& uncertainty, int digits);
// Half the width of an interval; none without one.
std::optional<double> half_width(const std::optional<double>& low, const std::optional<double>& high);

std::string count_text(std::int64_t count);  // 12,345,678
std::string seconds_text(double seconds);    // 0.21 ms, 3.4 s, 2 min 05 s
std::string bytes_text(double bytes);        // 1.5 KiB, 12.0 MiB
// "80GiB", "1.5 TiB", "500 MB", "4096". Throws std::invalid_argument, naming the text, on anything else, on zero
// and on more than an exbibyte (2^60).
double bytes_of_text(const std::string& text);

}  // namespace replayeval::reports
