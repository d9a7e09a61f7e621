#pragma once

#include "kernels/bench/decode_case.h"
#include "kernels/mamba2/mamba2.h"

#include <memory>

namespace replayeval::bench {

std::unique_ptr<DecodeCase> make_mamba2_case(BenchDevice& device, const ReplayOptions& options,
                                             const mamba2::Shape& shape, std::int64_t batch, const Part& part,
                                             Dtype state);

}  // namespace replayeval::bench
