#include "datasets/tasks/harness_checks.h"

#include <fmt/format.h>

#include <algorithm>

#include "datasets/tasks/json_member.h"
#include "datasets/tasks/right_choice.h"

namespace replayeval::tasks {

std::int64_t recorded_count(const OrderedJson& row, std::initializer_list<const char*> metrics, std::int64_t own,
                            const std::string& place) {
  constexpr std::int64_t slack = 16;
  const std::int64_t least = std::max(std::min<std::int64_t>(1, own), own / 2 - slack);
  for (const char* metric : metrics) {
    const auto pair = row.find(metric);
    if (pair != row.end() && pair->is_array() && pair->size() == 2)
      return as_integer((*pair)[1], fmt::format("{}: {}[1]", place, metric), least, 2 * own + slack);
  }
  return own;
}

void check_unconditional(const std::vector<TextPair>& requests, const std::string& delimiter,
                         const std::string& place) {
  const std::string at = place + ": arguments";
  const std::size_t half = requests.size() / 2;
  const bool halved =
      half * 2 == requests.size() && std::all_of(requests.begin() + static_cast<std::ptrdiff_t>(half), requests.end(),
                                                 [](const TextPair& request) { return request.context.empty(); });
  if (!halved)
    throw datasets::DataError(
        fmt::format("{}: found {} requests, the second half not all without context; expected "
                    "one without for each choice, as acc_mutual_info needs them",
                    at, requests.size()));
  const std::vector<TextPair> conditional(requests.begin(), requests.begin() + static_cast<std::ptrdiff_t>(half));
  if (only_contexts_differ(conditional)) return;  // there the choices are in the contexts
  for (std::size_t i = 0; i < half; ++i) {
    const std::string &whole = conditional[i].continuation, &alone = requests[half + i].continuation;
    if (alone != whole && delimiter + alone != whole)
      refuse(alone, fmt::format("{}.gen_args_{}.arg_1", at, half + i),
             "the continuation of gen_args_" + std::to_string(i) + ", for acc_mutual_info");
  }
}

}  // namespace replayeval::tasks
