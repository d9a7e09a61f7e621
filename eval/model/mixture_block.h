// A mixture of experts as a block: routed experts, and what stands beside and around them.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "eval/model/blocks.h"
#include "eval/model/experts.h"
#include "eval/model/router.h"

namespace replayeval {

struct MixtureParts {
  Router router;
  Experts experts;
  // Experts of a smaller width than the stream's: into it and out of it again; or undefined. Router and shared expert
  // see the stream.
  Linear latent_in, latent_out;
  std::unique_ptr<Block> shared;  // sees every token and is added; or null
  Linear shared_gate;             // to one number a token; or undefined: the shared expert is not gated
};

// latent_out(experts(latent_in x)) + sigmoid(shared_gate x) * shared(x)
class MixtureBlock : public Block {
 public:
  explicit MixtureBlock(MixtureParts parts) : parts_(std::move(parts)) {}
  at::Tensor run(const at::Tensor& x, const Step& step) const override;
  std::string graph_obstacle() const override;

 private:
  at::Tensor run_shared(const at::Tensor& x, const Step& step) const;

  MixtureParts parts_;
};

}  // namespace replayeval
