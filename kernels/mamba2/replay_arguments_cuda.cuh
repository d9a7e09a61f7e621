#pragma once

#include "kernels/mamba2/launch_cuda.cuh"

namespace replayeval::mamba2::cuda {

struct ReplayArguments {
  Shape shape;
  ReplayForm form;
  Block block;
  Inputs in;
  Parameters parameters;
  State state;
  Ring ring;
  Output out;
  HeadCut cut;
};

}  // namespace replayeval::mamba2::cuda
