#include "eval/metrics/device_divergence.h"

#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <memory>
#include <stdexcept>

#include "eval/metrics/row_divergence_cuda.h"

namespace replayeval::metrics {

#ifdef REPLAYEVAL_WITH_CUDA

namespace {

// table: a row of facts an arm.
RowFacts* facts_of(const at::Tensor& table, std::size_t arm) {
  return reinterpret_cast<RowFacts*>(table.select(0, static_cast<std::int64_t>(arm)).data_ptr());
}

}  // namespace

PendingScores score_on_gpu(std::span<const at::Tensor> logits, const at::Tensor& targets, std::size_t baseline,
                           Dtype logit_dtype) {
  const at::Device device = logits[baseline].device();
  const c10::DeviceGuard current(device);
  void* stream = c10::impl::VirtualGuardImpl(at::kCUDA).getStream(device).native_handle();
  const auto arms = static_cast<std::int64_t>(logits.size());
  const std::int64_t rows = targets.size(0), vocab = logits[baseline].size(1);
  const at::Tensor table = at::empty({arms, rows * static_cast<std::int64_t>(sizeof(RowFacts))},
                                     at::TensorOptions().dtype(at::kByte).device(device));
  const auto* ids = targets.const_data_ptr<std::int64_t>();
  const auto* baseline_logits = logits[baseline].const_data_ptr<float>();
  RowFacts* wanted = facts_of(table, baseline);  // until a kernel has written them
  for (std::size_t arm = 0; arm < logits.size(); ++arm) {
    if (arm == baseline) continue;
    compare_rows_on_gpu(stream, baseline_logits, logits[arm].const_data_ptr<float>(), ids, rows, vocab, wanted,
                        facts_of(table, arm));
    wanted = nullptr;
  }
  if (wanted != nullptr) describe_rows_on_gpu(stream, baseline_logits, ids, rows, vocab, wanted);
  const at::Tensor here = at::empty(table.sizes(), at::TensorOptions().dtype(at::kByte).pinned_memory(true));
  here.copy_(table, /*non_blocking=*/true);
  auto done = std::make_shared<c10::Event>(c10::DeviceType::CUDA);
  done->record(c10::impl::VirtualGuardImpl(at::kCUDA).getStream(device));
  return [here, done, arms, rows, baseline, logit_dtype] {
    done->synchronize();
    std::vector<std::vector<RowScore>> scores;
    for (std::int64_t arm = 0; arm < arms; ++arm)
      scores.push_back(
          scores_of(facts_of(here, static_cast<std::size_t>(arm)), facts_of(here, baseline), rows, logit_dtype));
    return scores;
  };
}

#else

PendingScores score_on_gpu(std::span<const at::Tensor> /*logits*/, const at::Tensor& /*targets*/,
                           std::size_t /*baseline*/, Dtype /*logit_dtype*/) {
  throw std::runtime_error("logits on a GPU: this build has no CUDA");
}

#endif

}  // namespace replayeval::metrics
