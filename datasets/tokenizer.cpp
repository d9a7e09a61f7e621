#include "datasets/tokenizer.h"

#include <array>

#include "datasets/sentencepiece_tokenizer.h"

namespace replayeval::datasets {
namespace {

using Loader = std::unique_ptr<Tokenizer> (*)(const std::filesystem::path& file);

struct Format {
  const char* file_name;
  Loader load;
};

std::unique_ptr<Tokenizer> refuse(const std::filesystem::path& file) {
  throw DataError(file.string() +
                  ": byte-level BPE tokenizers are not supported yet; expected a tokenizer.model "
                  "(sentencepiece) beside it");
}

// By the file present; the first match is taken.
constexpr std::array formats = {
    Format{.file_name = "tokenizer.model", .load = &load_sentencepiece},
    Format{.file_name = "tokenizer.json", .load = &refuse},
};

}  // namespace

std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& checkpoint_folder) {
  if (!std::filesystem::is_directory(checkpoint_folder)) {
    throw DataError(checkpoint_folder.string() +
                    ": no such folder; expected a checkpoint folder with a tokenizer.model");
  }
  for (const Format& format : formats) {
    const std::filesystem::path file = checkpoint_folder / format.file_name;
    if (std::filesystem::exists(file)) {
      return format.load(file);
    }
  }
  throw DataError(checkpoint_folder.string() + ": holds no tokenizer; expected a tokenizer.model (sentencepiece)");
}

}  // namespace replayeval::datasets
