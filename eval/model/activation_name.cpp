#include "eval/model/activation_name.h"

#include <map>

namespace replayeval {

Activation read_activation(ConfigReader& reader, const std::string& key, const std::string& fallback) {
  static const std::map<std::string, Activation> activations = {{"silu", Activation::silu},
                                                                {"swish", Activation::silu},
                                                                {"gelu", Activation::gelu},
                                                                {"gelu_new", Activation::gelu_tanh},
                                                                {"gelu_fast", Activation::gelu_tanh},
                                                                {"gelu_pytorch_tanh", Activation::gelu_tanh},
                                                                {"relu", Activation::relu}};
  const auto found = activations.find(reader.word(key, fallback));
  if (found == activations.end()) reader.fail(key, "silu, gelu, gelu_pytorch_tanh or relu");
  return found->second;
}

}  // namespace replayeval
