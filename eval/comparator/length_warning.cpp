#include "eval/comparator/length_warning.h"

#include <fmt/format.h>

namespace replayeval {

std::optional<std::string> length_warning(const Model& model, std::int64_t tokens) {
  if (tokens <= model.max_positions()) return std::nullopt;
  return fmt::format("sequences of up to {} tokens; the checkpoint's config.json promises {} positions", tokens,
                     model.max_positions());
}

}  // namespace replayeval
