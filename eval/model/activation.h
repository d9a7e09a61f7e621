// The activations of MLPs.
#pragma once

#include <ATen/core/Tensor.h>

#include "eval/model/activation_name.h"

namespace replayeval {

// In the type of x; one arm's part at a time on the CPU (layers.h says why).
at::Tensor activate(const at::Tensor& x, Activation activation);

}  // namespace replayeval
