// rotary_table FOLDER...: what the rope keys of each folder's config.json come to, one JSON object a line:
// {"attention_factor": a, "frequencies": {"LENGTH": [...]}}, the inverse frequencies of the last token of a sequence of
// each length that the config's key "lengths" names. For the comparison with transformers (test_rotary.py).
#include <ATen/ATen.h>

#include <exception>
#include <iostream>
#include <nlohmann/json.hpp>

#include "eval/checkpoint/checkpoint.h"
#include "eval/model/config_reader.h"
#include "eval/model/rotary.h"

namespace replayeval {
namespace {

nlohmann::json table_of(const std::string& folder) {
  const Checkpoint checkpoint = Checkpoint::open(folder);
  ConfigReader reader(checkpoint);
  RotaryRules rules;
  rules.head_dim = reader.positive("head_dim");
  rules.max_positions = reader.positive("max_position_embeddings");
  const std::vector<double> lengths = reader.numbers("lengths", {});
  const RotaryConfig config = read_rotary(reader, rules);
  reader.ignore({"model_type"});
  reader.finish();
  const Rotary rotary = make_rotary(config, at::Device(at::kCPU));
  nlohmann::json table = {{"attention_factor", rotary.attention_factor}};
  for (const double length : lengths) {
    const auto last = static_cast<std::int64_t>(length) - 1;
    const at::Tensor row = inverse_frequencies(rotary, at::tensor({last}, at::kLong)).flatten().contiguous();
    const auto* values = row.const_data_ptr<float>();
    table["frequencies"][std::to_string(last + 1)] = std::vector<float>(values, values + row.numel());
  }
  return table;
}

}  // namespace
}  // namespace replayeval

int main(int argc, char** argv) {
  try {
    for (int i = 1; i < argc; ++i) std::cout << replayeval::table_of(argv[i]).dump() << "\n";
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 3;
  }
}
