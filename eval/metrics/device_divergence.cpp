#include "eval/metrics/device_divergence.h"

#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <stdexcept>

#include "eval/metrics/row_divergence_cuda.h"

namespace replayeval::metrics {

#ifdef REPLAYEVAL_WITH_CUDA

std::vector<std::vector<RowScore>> score_on_gpu(std::span<const at::Tensor> logits, const at::Tensor& targets,
                                                std::size_t baseline, Dtype logit_dtype) {
  const at::Device device = logits[baseline].device();
  const c10::DeviceGuard current(device);
  void* stream = c10::impl::VirtualGuardImpl(at::kCUDA).getStream(device).native_handle();
  const auto arms = static_cast<std::int64_t>(logits.size());
  const std::int64_t rows = targets.size(0), vocab = logits[baseline].size(1);
  const at::Tensor table = at::empty({arms, rows * static_cast<std::int64_t>(sizeof(RowFacts))},
                                     at::TensorOptions().dtype(at::kByte).device(device));
  const auto facts = [](const at::Tensor& of_all, std::size_t arm) {
    return reinterpret_cast<RowFacts*>(of_all.select(0, static_cast<std::int64_t>(arm)).data_ptr());
  };
  const auto* ids = targets.const_data_ptr<std::int64_t>();
  const auto* baseline_logits = logits[baseline].const_data_ptr<float>();
  RowFacts* wanted = facts(table, baseline);  // until a kernel has written them
  for (std::size_t arm = 0; arm < logits.size(); ++arm) {
    if (arm == baseline) continue;
    compare_rows_on_gpu(stream, baseline_logits, logits[arm].const_data_ptr<float>(), ids, rows, vocab, wanted,
                        facts(table, arm));
    wanted = nullptr;
  }
  if (wanted != nullptr) describe_rows_on_gpu(stream, baseline_logits, ids, rows, vocab, wanted);
  const at::Tensor here = table.cpu();
  std::vector<std::vector<RowScore>> scores;
  for (std::size_t arm = 0; arm < logits.size(); ++arm)
    scores.push_back(scores_of(facts(here, arm), facts(here, baseline), rows, logit_dtype));
  return scores;
}

#else

std::vector<std::vector<RowScore>> score_on_gpu(std::span<const at::Tensor> /*logits*/, const at::Tensor& /*targets*/,
                                                std::size_t /*baseline*/, Dtype /*logit_dtype*/) {
  throw std::runtime_error("logits on a GPU: this build has no CUDA");
}

#endif

}  // namespace replayeval::metrics
