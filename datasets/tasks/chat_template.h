// Whether a prompt looks as an instruction-tuned checkpoint was trained to be asked.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace replayeval::tasks {

class ChatTemplate {
 public:
  ChatTemplate() = default;  // none
  // Of chat_template.jinja or tokenizer_config.json in the folder, if there. Throws DataError naming file and key.
  static ChatTemplate read(const std::filesystem::path& checkpoint_folder);

  // The tokens that mark turns: what the template's text holds of the tokenizer's added tokens, bos and eos left out,
  // or, if there is none, of words such as <|user|> and [INST].
  const std::vector<std::string>& control_tokens() const { return control_tokens_; }
  bool is_present() const { return present_; }
  // Whether there is a template with control tokens and `prompt` holds none of them.
  bool is_missing_in(std::string_view prompt) const;

 private:
  bool present_ = false;
  std::vector<std::string> control_tokens_;
};

}  // namespace replayeval::tasks
