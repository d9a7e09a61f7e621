// What all architectures share: embeddings, layers over the residual stream of all arms, a final norm and a head.
// An architecture's file fills the parts by a HybridBuilder; this one runs them.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "eval/model/architecture.h"
#include "eval/model/hybrid_layer.h"
#include "eval/model/model.h"

namespace replayeval {

struct PlacedLayer {
  at::Device device;
  std::unique_ptr<Layer> layer;
};

struct HybridParts {
  Architecture architecture;
  at::Tensor embeddings;  // [vocab, hidden], compute dtype
  double embedding_multiplier = 1.0;
  std::vector<PlacedLayer> layers;
  Norm final_norm;
  at::Tensor head;                 // [vocab, hidden]: float32 on the CPU, compute dtype on CUDA; see logits()
  double logits_multiplier = 1.0;  // on the logits
  std::vector<std::shared_ptr<const Mixer>> mixers;  // in layer order
  std::vector<std::int64_t> mixer_layers;
  std::vector<KeyValueShape> attention;  // in layer order
  WeightTotals totals;
};

std::unique_ptr<Model> make_hybrid_model(HybridParts parts, const ModelOptions& options);

}  // namespace replayeval
