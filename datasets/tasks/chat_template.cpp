#include "datasets/tasks/chat_template.h"

#include <algorithm>

#include "datasets/json_node.h"
#include "datasets/tasks/python_regex.h"
#include "datasets/text_source.h"
#include "datasets/tokenizer_config.h"

namespace replayeval::tasks {
namespace {

using datasets::JsonNode;

nlohmann::json read_document(const std::filesystem::path& file) {
  return datasets::parse_json(datasets::read_text_file(file), file.string());
}

// One text, or a list of {name, template}: all of them, one after the other.
std::string template_text(const std::filesystem::path& folder) {
  if (std::filesystem::exists(folder / "chat_template.jinja"))
    return datasets::read_text_file(folder / "chat_template.jinja");
  const std::filesystem::path file = folder / "tokenizer_config.json";
  if (!std::filesystem::exists(file)) return "";
  const nlohmann::json document = read_document(file);
  const auto value = JsonNode(document, file.string()).find("chat_template");
  if (!value) return "";
  if (value->value().is_string()) return value->string();
  std::string text;
  for (const JsonNode& element : value->elements()) text += element.at("template").string();
  return text;
}

void add_contents(const JsonNode& tokens, std::vector<std::string>& contents) {
  for (const auto& item : tokens.value().items())
    if (item.value().is_object() && item.value().contains("content") && item.value().at("content").is_string())
      contents.push_back(item.value().at("content").get<std::string>());
}

std::vector<std::string> added_tokens(const std::filesystem::path& folder) {
  std::vector<std::string> contents;
  for (const auto& [name, key] :
       {std::pair("tokenizer_config.json", "added_tokens_decoder"), std::pair("tokenizer.json", "added_tokens")}) {
    const std::filesystem::path file = folder / name;
    if (!std::filesystem::exists(file)) continue;
    const nlohmann::json document = read_document(file);
    if (const auto tokens = JsonNode(document, file.string()).find(key)) add_contents(*tokens, contents);
  }
  return contents;
}

}  // namespace

ChatTemplate ChatTemplate::read(const std::filesystem::path& checkpoint_folder) {
  ChatTemplate found;
  const std::string text = template_text(checkpoint_folder);
  if (text.empty()) return found;
  found.present_ = true;
  const datasets::TokenizerConfig config = datasets::read_tokenizer_config(checkpoint_folder);
  for (const std::string& token : added_tokens(checkpoint_folder))
    if (!token.empty() && token != config.bos_token && token != config.eos_token &&
        text.find(token) != std::string::npos)
      found.control_tokens_.push_back(token);
  if (found.control_tokens_.empty())
    for (const auto& match : PythonRegex(R"(<\|[^|>\s]+\|>|\[/?INST\])", "chat template").find_all(text))
      found.control_tokens_.push_back(match[0]);
  std::sort(found.control_tokens_.begin(), found.control_tokens_.end());
  found.control_tokens_.erase(std::unique(found.control_tokens_.begin(), found.control_tokens_.end()),
                              found.control_tokens_.end());
  return found;
}

bool ChatTemplate::is_missing_in(std::string_view prompt) const {
  return !control_tokens_.empty() &&
         std::none_of(control_tokens_.begin(), control_tokens_.end(),
                      [&](const std::string& token) { return prompt.find(token) != std::string_view::npos; });
}

}  // namespace replayeval::tasks
