#include "eval/model/common_keys.h"

#include <cmath>

namespace replayeval {

void ignore_common_keys(ConfigReader& reader) {
  reader.ignore({"architectures",
                 "auto_map",
                 "transformers_version",
                 "dtype",
                 "torch_dtype",
                 "_name_or_path",
                 "name_or_path",
                 "quantization_config",
                 "bos_token_id",
                 "eos_token_id",
                 "pad_token_id",
                 "sep_token_id",
                 "use_cache",
                 "num_logits_to_keep",
                 "initializer_range",
                 "attention_dropout",
                 "hidden_dropout",
                 "return_dict",
                 "output_attentions",
                 "output_hidden_states",
                 "output_router_logits",
                 "router_aux_loss_coef",
                 "is_encoder_decoder",
                 "chunk_size_feed_forward",
                 "id2label",
                 "label2id",
                 "problem_type"});
}

void finish_keys(ConfigReader& reader, Architecture& architecture) {
  reader.finish();
  architecture.keys_read = reader.keys_read();
  architecture.keys_ignored = reader.keys_ignored();
}

double read_finite(ConfigReader& reader, const std::string& key, double fallback) {
  const double value = reader.number(key, fallback);
  if (std::isinf(value)) reader.fail(key, "a finite number");
  return value;
}

double read_norm_eps(ConfigReader& reader, const std::string& key, double fallback) {
  const double value = reader.number(key, fallback);
  if (value < 0.0 || value > 1.0) reader.fail(key, "a number from 0 to 1");
  return value;
}

void read_attention_heads(ConfigReader& reader, Architecture& architecture, const HeadDefaults& defaults) {
  const std::string heads = "num_attention_heads";
  architecture.num_heads = defaults.num_heads ? reader.positive(heads, *defaults.num_heads) : reader.positive(heads);
  architecture.num_kv_heads =
      reader.positive("num_key_value_heads", defaults.num_kv_heads.value_or(architecture.num_heads));
  if (architecture.num_heads % architecture.num_kv_heads != 0)
    reader.fail("num_key_value_heads",
                "a divisor of num_attention_heads (" + std::to_string(architecture.num_heads) + ")");
}

void read_attention_sizes(ConfigReader& reader, Architecture& architecture) {
  read_attention_heads(reader, architecture);
  if (!reader.has("head_dim") && architecture.hidden_size < architecture.num_heads)
    reader.fail("num_attention_heads", "at most hidden_size, as there is no head_dim");
  architecture.head_dim = reader.positive("head_dim", architecture.hidden_size / architecture.num_heads);
}

}  // namespace replayeval
