// SHA-256 of byte spans, for naming checkpoints in results.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace replayeval {

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  void add(std::span<const std::byte> bytes);
  std::string hex();  // of everything added; call once

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace replayeval
