// A hybrid language model decoding under several arms at once: embeddings and dense layers run once over the stacked
// rows of all arms, the mixers dispatch per arm (design: "Arms are stacked").
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "eval/checkpoint/checkpoint.h"
#include "eval/executors/arm.h"
#include "eval/executors/kernel_clock.h"
#include "eval/executors/mixer.h"
#include "eval/model/delta_numerics.h"
#include "eval/model/dt_floor.h"
#include "eval/model/key_value_pages.h"
#include "eval/model/norm_span.h"

namespace replayeval {

// Where the parts of a model live.
struct Placement {
  at::Device embeddings = at::Device(at::kCPU);
  std::vector<at::Device> layers;
  at::Device head = at::Device(at::kCPU);  // the final norm and the head; a tied head stays with the embeddings
};

struct ModelOptions {
  DeviceKind device = DeviceKind::cpu;
  Dtype compute_dtype = Dtype::float32;  // of dense layers, mixer inputs and the convolution
  DtFloor dt_floor = DtFloor::published;
  std::optional<std::uint64_t> random_seed = {};    // weights out of this seed (random_weights.h), none are read
  std::vector<int> gpus = {};                       // CUDA devices to spread the layers over; empty: the first one ...
  bool all_gpus = false;                            // ... or, with this, as few of all as hold the weights
  std::shared_ptr<const Placement> placement = {};  // instead of `gpus`: made by load_model()
  NormSpan norm_span = NormSpan::published;
  delta_rule::Numerics delta_rule = default_delta_numerics;
  bool graphs = true;  // on a GPU, one-token steps are captured and replayed (step_graphs.h); the bits are the same
};

// What the weights are made of.
struct WeightTotals {
  std::int64_t parameters = 0;         // elements, without scales
  std::int64_t expert_parameters = 0;  // of them in routed experts, of which a token uses a few
  std::int64_t expert_bytes = 0;       // of these, in memory
  std::int64_t embedding_bytes = 0;    // in memory, in the types that they are computed in
  std::vector<std::int64_t> layer_bytes;
  std::int64_t head_bytes = 0;  // of the final norm and the head, where that is not the embeddings
  bool tied_head = false;       // the head is the embeddings
};

// Bytes that one sequence of one arm holds, over all layers.
struct SequenceBytes {
  std::int64_t state = 0, ring = 0;
};

// Bytes of keys and values over all arms and layers. Sequences hold whole pages, `page_length` tokens each; `reserved`
// is what their pools take, free pages included.
struct KeyValueBytes {
  std::int64_t held = 0, reserved = 0;
};

// Part of what a sequence holds in one arm: "state", "convolution", "ring", "cursor", "keys" or "values".
struct HeldTensor {
  std::size_t arm = 0;
  std::string part;
  std::int64_t index = 0;  // of the part's tensors in the arm, in layer order
  at::Tensor value;        // a copy
};

// One row per decoded sequence: slots of all arms' caches, positions, KV. Opaque outside eval/model.
class DecodeCache {
 public:
  virtual ~DecodeCache() = default;
  virtual const std::vector<Arm>& arms() const = 0;
  virtual std::int64_t slots() const = 0;
  virtual std::int64_t capacity() const = 0;  // tokens per slot, at most
  virtual void reset() = 0;                   // all slots of all arms: empty sequences (storage counts are kept)
  virtual void reset_slot(std::int64_t slot) = 0;
  virtual std::int64_t position(std::int64_t slot = 0) const = 0;  // tokens that the slot's sequence holds

  // Makes a slot hold the sequence of another cache's slot, of the same model. Throws std::invalid_argument where the
  // sequence does not fit, or the caches' arms do not, and OutOfPages:
  // bit by bit (state, ring, cursor, convolution, keys and values): `from` has arms of the same arithmetic, in order.
  virtual void copy_slot(std::int64_t slot, const DecodeCache& from, std::int64_t from_slot) = 0;
  // what a prompt leaves behind, computed as servers do it, in every arm: `from` has one arm, exact with float32 states
  // (prefill_arm()). States are rounded to each arm's storage, rings are empty.
  virtual void store_prefilled(std::int64_t slot, const DecodeCache& from, std::int64_t from_slot) = 0;

  // [layers of mixers] for one arm, in layer order: counts of odd stored values so far.
  virtual std::vector<StorageCounts> storage_counts(std::size_t arm) const = 0;
  virtual SequenceBytes sequence_bytes(std::size_t arm) const = 0;
  virtual KeyValueBytes key_value_bytes() const = 0;
  // Everything that decides how the slot's sequence goes on: two sequences that are equal here are one. Checkpoint and
  // ring as stored, keys and values [heads, tokens, dim] of the tokens that it holds.
  virtual std::vector<HeldTensor> held(std::int64_t slot) const = 0;
  // Why one-token steps of this cache are launched kernel by kernel and not replayed as CUDA graphs; "" if they are.
  virtual std::string graph_obstacle() const = 0;
};

// The arm that computes prompts where they do not go through the arms themselves (`prompt: prefill`).
Arm prefill_arm();

// Sees each mixer's input, arm by arm, before the mixer runs. `mixer` counts state-space layers from 0.
class MixerTap {
 public:
  virtual ~MixerTap() = default;
  virtual void on_mixer(std::int64_t mixer, std::size_t arm, const at::Tensor& projected /* [B, T, projection] */) = 0;
};

class Model {
 public:
  virtual ~Model() = default;

  virtual const std::string& model_type() const = 0;
  virtual std::int64_t vocab_size() const = 0;
  virtual std::int64_t hidden_size() const = 0;
  virtual std::int64_t max_positions() const = 0;
  virtual std::int64_t parameter_count() const = 0;
  virtual const WeightTotals& weight_totals() const = 0;
  virtual const ModelOptions& options() const = 0;
  virtual const std::vector<std::shared_ptr<const Mixer>>& mixers() const = 0;  // in layer order
  virtual const std::vector<std::int64_t>& mixer_layers() const = 0;            // layer index of each mixer

  // Keys and values take memory as sequences grow. Throws std::invalid_argument on no arms, an arm that makes no sense,
  // slots, capacity or pages below 1.
  virtual std::unique_ptr<DecodeCache> make_cache(const std::vector<Arm>& arms, std::int64_t slots,
                                                  std::int64_t capacity,
                                                  const KeyValuePageOptions& pages = {}) const = 0;

  // ids: [B, T] int64 on the CPU or the model's device, the same for all arms, or [arms, B, T]. Ids that lie on a GPU
  // are not looked at: one outside the vocabulary is a CUDA failure. Row b is appended to
  // slot slots[b] of every arm; without `slots` to slot b, and B == cache.slots(). Slots are distinct; a negative one
  // marks a padded row, whose tokens go nowhere and whose results mean nothing. Returns the hidden states after the
  // final norm, [arms, B, T, hidden_size], compute dtype. stepwise runs T one-token steps, teacher_forced one block.
  // Throws std::invalid_argument on a token id outside the vocabulary (naming id, place and vocabulary size), on slots
  // that do not exist or repeat, or when capacity would be passed; OutOfPages, before the step changes anything, where
  // the cache's limit of pages would be; std::runtime_error on CUDA failures.
  virtual at::Tensor forward(const at::Tensor& ids, DecodeCache& cache, Mode mode, KernelClock* clock = nullptr,
                             MixerTap* tap = nullptr, const std::vector<std::int32_t>& slots = {}) const = 0;

  // hidden: [arms, ..., hidden_size] or [rows, hidden_size] -> float32 logits of the same leading sizes, [..,
  // vocab_size]. Arms that are equal have equal logits, to the bit.
  virtual at::Tensor logits(const at::Tensor& hidden) const = 0;
};

// Throws CheckpointError (one line: file, place, expectation) on an unsupported model_type or config key, missing,
// misshapen, or non-finite tensors; std::runtime_error when the GPUs are not there or their free memory holds no plan
// (device_plan.h).
std::unique_ptr<Model> load_model(const Checkpoint& checkpoint, const ModelOptions& options);

// The sizes of what load_model() would load; takes no memory and reads no weights. Throws CheckpointError as
// load_model().
WeightTotals weight_totals(const Checkpoint& checkpoint, const ModelOptions& options);

}  // namespace replayeval
