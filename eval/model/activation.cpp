#include "eval/model/activation.h"

#include <ATen/ATen.h>

namespace replayeval {

at::Tensor activate(const at::Tensor& x, Activation activation) {
  switch (activation) {
    case Activation::silu:
      return at::silu(x);
    case Activation::gelu:
      return at::gelu(x);
    case Activation::gelu_tanh:
      return at::gelu(x, "tanh");
    case Activation::relu:
      break;
  }
  return at::relu(x);
}

}  // namespace replayeval
