// The tensors of a model, by name and shape: out of a checkpoint, out of a seed, or as mere shapes.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "eval/checkpoint/checkpoint.h"

namespace replayeval {

class WeightLoader {
 public:
  // Names are looked up behind the first of `prefixes` that `probe` exists under; throws CheckpointError naming the
  // probe if it exists under none. Without weights, or with a seed, the first prefix counts and nothing is looked up.
  // With `random_seed` the tensors come from fill_random(), whatever the folder holds. On the meta device they have
  // shapes and no contents, and what the folder holds is not looked at either.
  WeightLoader(const Checkpoint& checkpoint, at::Device device, const std::vector<std::string>& prefixes,
               const std::string& probe, std::optional<std::uint64_t> random_seed = {});

  void set_device(at::Device device) { device_ = device; }  // of the tensors loaded from now on

  // The tensor `prefix + name`, converted to `type` on the device. Stored as F32, BF16 or F16, or as F8_E4M3 with a
  // scale. Throws CheckpointError naming file and tensor when it is missing, has another shape or type, or holds a NaN
  // or infinity (naming the first).
  at::Tensor load(const std::string& name, const std::vector<std::int64_t>& shape, at::ScalarType type);
  at::Tensor load_unprefixed(const std::string& name, const std::vector<std::int64_t>& shape, at::ScalarType type);
  // As load(), into memory that is there (contiguous): one of several tensors that are kept in one.
  void load_into(const std::string& name, const at::Tensor& destination);
  // The tensors `names` one behind the other along their first size, as one of `shape`. How many rows each of them has
  // is for the folder to say, as long as they come to shape[0].
  at::Tensor load_joined(const std::vector<std::string>& names, const std::vector<std::int64_t>& shape,
                         at::ScalarType type);

  // Whether the folder holds the tensor; `otherwise` where nothing is looked up.
  bool has(const std::string& name, bool otherwise = false) const;
  bool has_unprefixed(const std::string& name, bool otherwise = false) const;
  // Of several names that folders have for one thing: the first for which the folder holds the tensor `name + leaf`,
  // the first of all where it holds none or nothing is looked up.
  std::string stored_name(const std::vector<std::string>& names, const std::string& leaf = ".weight") const;

  std::int64_t parameter_count() const { return parameter_count_; }  // elements loaded so far, without scales
  std::int64_t expert_parameter_count() const { return expert_parameter_count_; }  // of them, in routed experts
  std::int64_t expert_byte_count() const { return expert_byte_count_; }
  std::int64_t byte_count() const { return byte_count_; }  // of them in memory

  // Throws CheckpointError naming the first tensor that was not loaded, does not begin with a prefix in `skipped` and
  // is no scale of activations.
  void finish(const std::vector<std::string>& skipped) const;

 private:
  bool looks_up() const { return !seed_ && !device_.is_meta() && checkpoint_.has_weights(); }
  void require_shape(const std::string& name, const std::vector<std::int64_t>& shape) const;
  void fill(const std::string& name, const at::Tensor& destination);

  const Checkpoint& checkpoint_;
  at::Device device_;
  std::optional<std::uint64_t> seed_;
  std::string prefix_;
  std::set<std::string> loaded_;
  std::int64_t parameter_count_ = 0, expert_parameter_count_ = 0, byte_count_ = 0, expert_byte_count_ = 0;
};

}  // namespace replayeval
