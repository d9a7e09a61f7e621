#include "eval/model/token_ids.h"

#include <ATen/ATen.h>

#include <stdexcept>
#include <string>

namespace replayeval {

void check_token_ids(const at::Tensor& ids, std::int64_t vocab_size, const RowSlots& rows, std::int64_t arms,
                     std::int64_t capacity) {
  const bool per_arm = ids.dim() == 3 && ids.size(0) == arms;
  if ((ids.dim() != 2 && !per_arm) || ids.scalar_type() != at::kLong || ids.size(-2) != rows.rows() || ids.size(-1) < 1)
    throw std::invalid_argument("token ids: expected int64 [" + std::to_string(rows.rows()) + ", tokens] or [" +
                                std::to_string(arms) + ", " + std::to_string(rows.rows()) +
                                ", tokens] with at least one token, one row a sequence");
  const std::int64_t tokens = ids.size(-1);
  if (rows.longest() + tokens > capacity)
    throw std::invalid_argument("token ids: " + std::to_string(tokens) + " more tokens after " +
                                std::to_string(rows.longest()) + "; expected at most the cache's capacity of " +
                                std::to_string(capacity));
  if (!ids.is_cpu()) return;  // a look would wait for the device, at every token
  const at::Tensor here = ids.contiguous();
  const auto* values = here.const_data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < here.numel(); ++i)
    if (values[i] < 0 || values[i] >= vocab_size)
      throw std::invalid_argument("token id " + std::to_string(values[i]) + " at sequence " +
                                  std::to_string(i / tokens % rows.rows()) + ", token " + std::to_string(i % tokens) +
                                  "; expected 0 to " + std::to_string(vocab_size - 1) + " (vocabulary of " +
                                  std::to_string(vocab_size) + ")");
}

}  // namespace replayeval
