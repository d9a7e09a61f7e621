// The keys of Mamba-2 mixers in config.json.
#pragma once

#include <cstdint>
#include <string>

#include "eval/model/architecture.h"
#include "eval/model/config_reader.h"
#include "eval/model/mamba_form.h"
#include "kernels/mamba2/mamba2.h"

namespace replayeval {

struct TimeStepLimit {
  double min = 0.0, max = 0.0;  // of softplus(dt + dt_bias); max may be infinite
};

// [min, max] under `key`; (0, infinity) if it is missing. Throws CheckpointError unless 0 <= min <= max.
TimeStepLimit read_time_step_limit(ConfigReader& reader, const std::string& key);

// Names of the sizes of a mixer, as they stand in config.json.
struct MambaSizeKeys {
  std::string num_heads, num_groups, head_dim, state_size, conv_kernel;
};

// Throws CheckpointError naming the key of the first size that the kernels do not have: head_dim a multiple of 8 up to
// 128, state_size a multiple of 8 up to 256, groups that divide the heads, a convolution of 2 to 8 taps.
void check_mamba_sizes(const ConfigReader& reader, const MambaSizeKeys& keys, const mamba2::Shape& shape,
                       std::int64_t conv_kernel);

// The gated norm of models that normalise each group by itself, in transformers too.
NormGroupSize norm_of_each_group(const mamba2::Shape& shape);

// The gated norm of mamba2, bamba and granitemoehybrid. The kernels that train them (mamba_ssm's fused one, which
// transformers, too, calls in training) normalise each group by itself; what transformers runs otherwise takes the
// whole width. Folders with one group, as all published ones of bamba and granitemoehybrid, know no difference.
NormGroupSize norm_of_each_group_in_training(const mamba2::Shape& shape);

struct MambaKeys {
  mamba2::Shape shape;
  std::int64_t conv_kernel = 4;
  bool conv_bias = true, proj_bias = false;
  TimeStepLimit time_step;
};

// The spelling that bamba and granitemoehybrid share: mamba_n_heads, mamba_d_head (a number or "auto"), mamba_n_groups,
// mamba_d_state, mamba_d_conv, mamba_expand, mamba_conv_bias, mamba_proj_bias, time_step_limit. Needs the
// architecture's layers and hidden_size, and fills its mamba, norm_group_size and conv_kernel; in a model without
// Mamba-2 layers the keys are ignored. Throws CheckpointError also where heads * head_dim is not mamba_expand *
// hidden_size.
MambaKeys read_mamba_keys(ConfigReader& reader, Architecture& architecture);

// A mixer of these keys and of the architecture that they were read into; `norm_eps` is the gated norm's.
MambaForm form_of_keys(const MambaKeys& keys, const Architecture& architecture, double norm_eps, NormSpan span);

}  // namespace replayeval
