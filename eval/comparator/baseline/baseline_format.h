// A portable baseline: what a later run needs to compare its arms with those of this one.
//
//   baseline.json           form, arms, checkpoint, head, tool, and each workload's data, file and SHA-256
//   WORKLOAD.safetensors    index [tokens, 4] I64: document, position in it, tokens decoded before in its window, token
//                           log_probs [tokens, arms] F64: of the token, nats
//                           hidden [tokens, arms, hidden_size]: final hidden states (form `hidden` alone)
//                           tokens in text order
//
// With the hidden states and the same head the whole distribution comes back: the comparison is the full-vocabulary KL.
// With log-probabilities alone it is the difference of perplexity.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "eval/checkpoint/safetensors.h"
#include "kernels/types.h"

namespace replayeval {

enum class BaselineForm : std::uint8_t { hidden, log_probs };
std::string_view baseline_form_name(BaselineForm form);
std::optional<BaselineForm> parse_baseline_form(std::string_view name);

// What to keep, as asked for.
struct BaselineRequest {
  BaselineForm form = BaselineForm::hidden;
  std::optional<Dtype> dtype;     // of hidden states; absent: the compute dtype, which loses nothing
  std::vector<std::string> arms;  // empty: all
};

// One line that names the file and what was expected.
class BaselineError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

namespace baseline_names {
inline constexpr int format_version = 1;
inline constexpr const char* file = "baseline.json";
inline constexpr const char* index = "index";
inline constexpr const char* log_probs = "log_probs";
inline constexpr const char* hidden = "hidden";
}  // namespace baseline_names

std::string baseline_file(const std::string& workload);  // WORKLOAD.safetensors

struct BaselineSizes {
  std::int64_t tokens = 0, arms = 0, hidden_size = 0;
  std::optional<Dtype> hidden;  // absent: none are kept
};

// In the order of the file.
std::vector<TensorLayout> baseline_tensors(const BaselineSizes& sizes);
std::uint64_t baseline_bytes(const BaselineSizes& sizes);  // of all tensors

}  // namespace replayeval
