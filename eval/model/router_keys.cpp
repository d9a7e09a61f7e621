#include "eval/model/router_keys.h"

#include "eval/model/common_keys.h"

namespace replayeval {

void read_sigmoid_router(ConfigReader& reader, const std::string& experts, const RouterKeys& keys,
                         const RouterDefaults& defaults, MixtureShape& mixture, RouterForm& form) {
  form.scores = RouterScores::sigmoid;
  form.groups = reader.positive(keys.groups, 1);
  const std::int64_t group_size = mixture.experts / form.groups;
  if (mixture.experts % form.groups != 0 || (form.groups > 1 && group_size < 2))
    reader.fail(keys.groups, "a divisor of " + experts + " (" + std::to_string(mixture.experts) +
                                 ") that leaves at least two experts a group");
  form.groups_chosen = reader.positive(keys.groups_chosen, 1);
  if (form.groups_chosen > form.groups) reader.fail(keys.groups_chosen, "at most " + keys.groups);
  mixture.chosen = defaults.chosen ? reader.positive(keys.chosen, *defaults.chosen) : reader.positive(keys.chosen);
  if (mixture.chosen > form.groups_chosen * group_size)
    reader.fail(keys.chosen, "at most the experts of " + keys.groups_chosen + " groups (" +
                                 std::to_string(form.groups_chosen * group_size) + ")");
  form.chosen = mixture.chosen;
  form.renormalise = reader.flag(keys.renormalise, true);
  form.scale = read_finite(reader, keys.scale, defaults.scale);
}

}  // namespace replayeval
