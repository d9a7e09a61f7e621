#include "eval/model/qwen3_5_config.h"

#include <algorithm>
#include <string>
#include <vector>

#include "eval/model/common_keys.h"
#include "eval/model/config_reader.h"

namespace replayeval {
namespace {

// What stands around text_config: of images, and of multi-token prediction.
void ignore_wrapper_keys(ConfigReader& reader) {
  reader.ignore({"vision_config", "image_token_id", "video_token_id", "vision_start_token_id", "vision_end_token_id",
                 "language_model_only"});
  ignore_common_keys(reader);
}

void append_account(const ConfigReader& reader, Architecture& architecture) {
  for (const std::string& key : reader.keys_read()) architecture.keys_read.push_back(key);
  for (const std::string& key : reader.keys_ignored()) architecture.keys_ignored.push_back(key);
  std::sort(architecture.keys_read.begin(), architecture.keys_read.end());
  std::sort(architecture.keys_ignored.begin(), architecture.keys_ignored.end());
}

void read_dense(ConfigReader& reader, QwenHybridConfig& config) {
  constexpr QwenHybridDefaults defaults = {248320, 4096, 32, 4};
  read_qwen_hybrid(reader, defaults, config);
  config.mixtures.assign(config.architecture.layers.size(), false);
  read_qwen_feed_forward(reader, defaults, 12288, config);
}

}  // namespace

QwenHybridConfig read_wrapped_qwen(const Checkpoint& checkpoint, ReadLanguageModel read) {
  ConfigReader whole(checkpoint);
  QwenHybridConfig config;
  config.architecture.model_type = whole.word("model_type", "");
  const bool wrapped = whole.has("text_config");
  ConfigReader text = whole.nested("text_config");
  ConfigReader& reader = wrapped ? text : whole;
  read(reader, config);
  reader.ignore({"model_type", "mtp_num_hidden_layers", "mtp_use_dedicated_embeddings"});
  if (wrapped) {
    // The head is tied where either of both says so; one that is stored counts anyway.
    config.tie_word_embeddings = whole.flag("tie_word_embeddings", false) || config.tie_word_embeddings;
    ignore_wrapper_keys(whole);
  }
  finish_keys(whole, config.architecture);
  if (wrapped) {
    text.finish();
    append_account(text, config.architecture);
  }
  return config;
}

QwenHybridConfig read_qwen3_5_config(const Checkpoint& checkpoint) {
  return read_wrapped_qwen(checkpoint, &read_dense);
}

}  // namespace replayeval
