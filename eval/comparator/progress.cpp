#include "eval/comparator/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "eval/comparator/on_stderr.h"

namespace replayeval {
namespace {

constexpr auto terminal_interval = std::chrono::milliseconds(200);
constexpr auto plain_interval = std::chrono::seconds(10);  // a log should show life without filling up
constexpr int bar_width = 28;

std::string clock_text(double seconds) {
  const std::int64_t whole = std::llround(seconds);
  return whole < 3600 ? fmt::format("{}:{:02}", whole / 60, whole % 60)
                      : fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

}  // namespace

Progress::Progress(std::string title, std::int64_t total, bool quiet)
    : title_(std::move(title)),
      total_(std::max<std::int64_t>(total, 1)),
      quiet_(quiet),
      terminal_(::isatty(STDERR_FILENO) == 1),
      begin_(Clock::now()),
      last_draw_(begin_) {}

Progress::~Progress() {
  if (started_ && !finished_ && terminal_ && !quiet_) say("\n");
}

void Progress::skip(std::int64_t units) {
  already_ += units;
  done_ += units;
}

void Progress::start() {
  if (started_) return;
  started_ = true;
  begin_ = Clock::now();
  last_draw_ = begin_;
  draw(false);
}

void Progress::add(std::int64_t units) {
  done_ += units;
  const auto now = Clock::now();
  if (now - last_draw_ < (terminal_ ? Clock::duration(terminal_interval) : Clock::duration(plain_interval))) return;
  last_draw_ = now;
  draw(false);
}

void Progress::note(const std::string& line) {
  const bool over_bar = started_ && terminal_ && !quiet_;
  say("{}{}\n", over_bar ? "\r\x1b[K" : "", line);
  if (over_bar) draw(false);
}

void Progress::finish() {
  if (finished_) return;
  finished_ = true;
  draw(true);
}

void Progress::draw(bool final) {
  if (quiet_) return;
  const double seconds = std::chrono::duration<double>(Clock::now() - begin_).count();
  const double share = std::min(1.0, static_cast<double>(done_) / static_cast<double>(total_));
  const std::int64_t fresh = done_ - already_;
  std::string tail;
  if (final) {
    tail = fmt::format("in {}", clock_text(seconds));
  } else if (fresh > 0 && seconds > 0) {
    tail =
        fmt::format("{} left", clock_text(seconds * static_cast<double>(total_ - done_) / static_cast<double>(fresh)));
  }
  if (terminal_) {
    const int full = static_cast<int>(share * bar_width);
    say("\r\x1b[K{} [{}{}] {:3.0f} %  {}{}", title_, std::string(static_cast<std::size_t>(full), '#'),
        std::string(static_cast<std::size_t>(bar_width - full), '.'), 100 * share, tail, final ? "\n" : "");
  } else {
    const bool goes_on = fresh == 0 && already_ > 0 && !final;
    say("{}: {}{:.0f} %{}{}\n", title_, goes_on ? "goes on at " : "", 100 * share, tail.empty() ? "" : " ", tail);
  }
  std::fflush(stderr);
}

}  // namespace replayeval
