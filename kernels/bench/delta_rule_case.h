#pragma once

#include "kernels/bench/decode_case.h"
#include "kernels/delta_rule/delta_rule.h"

#include <memory>

namespace replayeval::bench {

std::unique_ptr<DecodeCase> make_delta_rule_case(BenchDevice& device, const ReplayOptions& options,
                                                 delta_rule::Family family, delta_rule::RingForm ring_form,
                                                 const delta_rule::Shape& shape, std::int64_t batch, const Part& part,
                                                 Dtype state);

}  // namespace replayeval::bench
