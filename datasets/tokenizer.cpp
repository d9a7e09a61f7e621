#include "datasets/tokenizer.h"

#include "datasets/json_node.h"
#include "datasets/sentencepiece_tokenizer.h"
#include "datasets/text_source.h"
#include "datasets/tokenizer_json.h"

namespace replayeval::datasets {
namespace {

constexpr const char* expected_files = "expected a tokenizer.json or a tokenizer.model (sentencepiece)";

}  // namespace

std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& checkpoint_folder) {
  if (!std::filesystem::is_directory(checkpoint_folder)) {
    throw DataError(checkpoint_folder.string() +
                    ": no such folder; expected a checkpoint folder with a tokenizer.json or a tokenizer.model");
  }
  const std::filesystem::path json = checkpoint_folder / "tokenizer.json",
                              model = checkpoint_folder / "tokenizer.model";
  const bool has_model = std::filesystem::exists(model);
  if (std::filesystem::exists(json)) {
    const nlohmann::json document = parse_json(read_text_file(json), json.string());
    if (!has_model || tokenizer_json_model_type(document, json) == "BPE") return make_json_tokenizer(document, json);
  }
  if (has_model) return load_sentencepiece(model);
  throw DataError(checkpoint_folder.string() + ": holds no tokenizer; " + expected_files);
}

}  // namespace replayeval::datasets
