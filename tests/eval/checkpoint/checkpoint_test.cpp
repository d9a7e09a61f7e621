#include "eval/checkpoint/checkpoint.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <functional>
#include <iterator>

#include "datasets/sha256.h"
#include "eval/checkpoint/safetensors.h"
#include "tests/eval/checkpoint/checkpoint_folder.h"
#include "tests/eval/checkpoint/expect_error.h"

namespace replayeval {
namespace {

using testing::data_of;
using testing::float_tensor;
using testing::safetensors_bytes;
using testing::safetensors_header;
using testing::Tensors;
using testing::write_bytes;

const Tensors& two_tensors() {
  static const Tensors tensors = {{"a", float_tensor({2, 3}, {1, 2, 3, 4, 5, 6})},
                                  {"b", {"BF16", {4}, std::string("\x80\x3f\x00\x40\x40\x40\x80\x40", 8)}}};
  return tensors;
}

class CheckpointTest : public ::testing::Test {
 protected:
  CheckpointTest() { write_config("{\"model_type\": \"x\"}"); }

  std::filesystem::path file(const std::string& name = "model.safetensors") const { return folder_.path() / name; }
  void write_config(const std::string& text) const { write_bytes(file("config.json"), text); }
  void write_header(const std::string& header, const std::string& data) const {
    write_bytes(file(), safetensors_bytes(header, data));
  }
  Checkpoint open() const { return Checkpoint::open(folder_.path()); }
  void expect_error(const std::vector<std::string>& parts) const {
    testing::expect_error<CheckpointError>([this] { open(); }, parts);
  }
  // The header of two_tensors() with one change.
  void expect_header_error(const std::function<void(nlohmann::json&)>& change, std::vector<std::string> parts) const {
    nlohmann::json header = safetensors_header(two_tensors());
    change(header);
    write_header(header.dump(), data_of(two_tensors()));
    parts.push_back("model.safetensors: header");
    expect_error(parts);
  }
  void write_shards() const {
    testing::write_safetensors(file("model-1.safetensors"), {{"a", two_tensors().at("a")}});
    testing::write_safetensors(file("model-2.safetensors"), {{"b", two_tensors().at("b")}});
  }
  void write_index(const nlohmann::json& weight_map) const {
    write_bytes(file("model.safetensors.index.json"), nlohmann::json{{"weight_map", weight_map}}.dump());
  }

  TemporaryFolder folder_;
};

TEST_F(CheckpointTest, ReadsWhatWasLaidOut) {
  const std::vector<TensorLayout> tensors = {{"second", "BF16", {3, 1}}, {"first", "I64", {2}}};
  const std::string header = replayeval::safetensors_header(tensors);
  EXPECT_EQ(header.size() % 8, 0U);
  write_bytes(file(), header + std::string("aabbcc") + std::string("1234567887654321"));
  const Checkpoint checkpoint = open();
  EXPECT_EQ(checkpoint.tensor("second").shape, (std::vector<std::int64_t>{3, 1}));
  EXPECT_EQ(checkpoint.tensor("second").bytes.size(), 6U);
  EXPECT_EQ(std::to_integer<char>(checkpoint.tensor("first").bytes[8]), '8');
  EXPECT_THROW(replayeval::safetensors_header(std::vector<TensorLayout>{{"odd", "F9", {1}}}), std::invalid_argument);
}

TEST_F(CheckpointTest, ReadsOneFile) {
  testing::write_safetensors(file(), two_tensors());
  const Checkpoint checkpoint = open();
  ASSERT_EQ(checkpoint.tensors().size(), 2U);
  const TensorView& a = checkpoint.tensor("a");
  EXPECT_EQ(a.dtype, "F32");
  EXPECT_EQ(a.shape, (std::vector<std::int64_t>{2, 3}));
  float last = 0;
  std::memcpy(&last, a.bytes.data() + 20, sizeof(last));
  EXPECT_EQ(last, 6.0F);
  EXPECT_EQ(checkpoint.tensor("b").bytes.size(), 8U);
  testing::expect_error<CheckpointError>([&] { checkpoint.tensor("c"); },
                                         {folder_.path().string(), "\"c\"", "missing"});
}

TEST_F(CheckpointTest, FoldersWhereFilesBelongAreNamed) {
  testing::write_safetensors(file(), two_tensors());
  const auto expect_folder_refused = [&](const std::string& name) {
    std::filesystem::remove(file(name));
    std::filesystem::create_directory(file(name));
    expect_error({file(name).string() + ": ", "folder", "expected"});
    std::filesystem::remove(file(name));
  };
  expect_folder_refused("model.safetensors");
  expect_folder_refused("model.safetensors.index.json");
  expect_folder_refused("config.json");
}

TEST_F(CheckpointTest, ReadsShards) {
  write_shards();
  write_index({{"a", "model-1.safetensors"}, {"b", "model-2.safetensors"}});
  const Checkpoint checkpoint = open();
  EXPECT_EQ(checkpoint.tensor("a").file.filename(), "model-1.safetensors");
  EXPECT_EQ(checkpoint.tensor("b").file.filename(), "model-2.safetensors");
}

TEST_F(CheckpointTest, HashIsThatOfTheBytesInNameOrder) {
  write_shards();
  write_index({{"a", "model-1.safetensors"}, {"b", "model-2.safetensors"}});
  std::string all;
  for (const char* name : {"config.json", "model-1.safetensors", "model-2.safetensors"}) {
    std::ifstream in(file(name), std::ios::binary);
    all.append(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  EXPECT_EQ(open().sha256(), datasets::sha256_hex(all));
}

TEST_F(CheckpointTest, InfinityInBothSpellingsButNotInStrings) {
  testing::write_safetensors(file(), two_tensors());
  write_config(R"({"bare": [0.0, Infinity, -Infinity], "object": {"__float__": "Infinity"}, "nan": NaN,)"
               R"( "text": "Infinity \" Infinity", "Infinity": true, "other": {"__float__": "x"}})");
  const nlohmann::json config = open().config();
  EXPECT_EQ(config["bare"][1].get<double>(), INFINITY);
  EXPECT_EQ(config["bare"][2].get<double>(), -INFINITY);
  EXPECT_EQ(config["object"].get<double>(), INFINITY);
  EXPECT_TRUE(std::isnan(config["nan"].get<double>()));
  EXPECT_EQ(config["text"], "Infinity \" Infinity");
  EXPECT_EQ(config["Infinity"], true);
  EXPECT_TRUE(config["other"].is_object());
}

TEST_F(CheckpointTest, RefusesBrokenConfigs) {
  testing::write_safetensors(file(), two_tensors());
  for (const char* text :
       {"", "{", "{\"a\": Infinityx}", "{\"a\": -Inf}", "{\"a\": xInfinity}", "{\"a\": \"Infinity}"}) {
    write_config(text);
    expect_error({"config.json", "not valid JSON"});
  }
  write_config("[1]");
  expect_error({"config.json", "expected a JSON object", "[1]"});
  write_config("{\"a\": 1, \"b\": {\"c\": 1, \"c\": 2}}");
  expect_error({"config.json", "\"c\"", "twice"});
  std::filesystem::remove(file("config.json"));
  expect_error({"config.json", "cannot be opened"});
}

TEST_F(CheckpointTest, RefusesFoldersWithoutWeights) {
  expect_error({folder_.path().string(), "no weights", "model.safetensors"});
  testing::write_safetensors(file(), {});
  expect_error({"model.safetensors", "no tensors"});
  testing::expect_error<CheckpointError>([] { Checkpoint::open("/nonexistent"); }, {"/nonexistent", "not a folder"});
}

TEST_F(CheckpointTest, RefusesTruncatedFiles) {
  const std::string whole = safetensors_bytes(safetensors_header(two_tensors()).dump(), data_of(two_tensors()));
  write_bytes(file(), whole.substr(0, 5));
  expect_error({"model.safetensors", "truncated", "5 bytes"});
  write_bytes(file(), whole.substr(0, 40));
  expect_error({"model.safetensors", "header length", "32 bytes follow"});
  write_bytes(file(), whole.substr(0, whole.size() - 1));
  expect_error({"model.safetensors", "\"b\"", "data_offsets", "31 bytes"});
  write_bytes(file(), whole + "x");
  expect_error({"model.safetensors", "33 bytes of data", "32"});
  write_bytes(file(), std::string(8, '\xff') + whole);
  expect_error({"model.safetensors", "header length", "at most"});
  write_bytes(file(), "");
  expect_error({"model.safetensors", "truncated"});
}

TEST_F(CheckpointTest, RefusesBrokenHeaders) {
  write_header("{not json}", "");
  expect_error({"model.safetensors: header", "not valid JSON"});
  write_header("[]", "");
  expect_error({"model.safetensors: header", "JSON object"});
  const std::string entry = R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]})";
  write_header("{\"a\":" + entry + ",\"a\":" + entry + "}", "1234");
  expect_error({"model.safetensors: header", "\"a\"", "twice"});
}

TEST_F(CheckpointTest, RefusesLyingHeaders) {
  expect_header_error([](auto& h) { h["a"]["dtype"] = "F31"; }, {"\"a\"", "\"F31\"", "expected"});
  expect_header_error([](auto& h) { h["a"].erase("dtype"); }, {"\"a\"", "dtype is missing"});
  expect_header_error([](auto& h) { h["a"]["shape"] = {2, 4}; }, {"\"a\"", "24 bytes", "8 elements"});
  expect_header_error([](auto& h) { h["a"]["shape"] = {2, -3}; }, {"\"a\"", "-3", "non-negative"});
  expect_header_error([](auto& h) { h["a"]["shape"] = {1LL << 40, 1LL << 40}; }, {"\"a\"", "63 bits"});
  expect_header_error([](auto& h) { h["a"]["shape"] = {1LL << 62}; }, {"\"a\"", "24 bytes"});
  expect_header_error([](auto& h) { h["a"].erase("shape"); }, {"\"a\"", "shape is missing"});
  expect_header_error([](auto& h) { h["b"]["dtype"] = "F32"; }, {"\"b\"", "8 bytes", "4 elements of 4"});
  expect_header_error([](auto& h) { h["b"]["data_offsets"] = {24, 33}; }, {"\"b\"", "do not lie in the 32 bytes"});
  expect_header_error([](auto& h) { h["b"]["data_offsets"] = {32, 24}; }, {"\"b\"", "do not lie"});
  expect_header_error([](auto& h) { h["b"]["data_offsets"] = {24}; }, {"\"b\"", "[begin, end]"});
  expect_header_error([](auto& h) { h["b"]["data_offsets"] = {20, 28}; }, {"\"b\"", "byte 20", "overlapping", "24"});
  expect_header_error([](auto& h) { h["a"]["data_offsets"] = {8, 32}; }, {"\"a\"", "byte 8", "gap", "0"});
  expect_header_error([](auto& h) { h["a"] = 3; }, {"\"a\"", "expected an object"});
}

TEST_F(CheckpointTest, RefusesAnIndexThatDoesNotMatch) {
  write_shards();
  write_index({{"a", "model-1.safetensors"}, {"b", "model-3.safetensors"}});
  expect_error({"index.json", "\"b\"", "model-3.safetensors", "does not exist"});
  write_index({{"a", "model-1.safetensors"}, {"b", "model-2.safetensors"}, {"c", "model-2.safetensors"}});
  expect_error({"index.json", "\"c\"", "not in model-2.safetensors"});
  write_index({{"a", "model-1.safetensors"}, {"b", "model-1.safetensors"}});
  expect_error({"index.json", "\"b\"", "not in model-1.safetensors"});
  write_index({{"a", "model-2.safetensors"}, {"b", "model-1.safetensors"}});
  expect_error({"index.json", "\"a\"", "but in model-1.safetensors"});
  write_index({{"a", "../model-1.safetensors"}});
  expect_error({"index.json", "\"a\"", "a file in this folder"});
  write_index({{"a", 7}});
  expect_error({"index.json", "\"a\"", "7"});
  write_index(nlohmann::json::object());
  expect_error({"index.json", "weight_map is empty"});
  write_bytes(file("model.safetensors.index.json"), "{}");
  expect_error({"index.json", "weight_map is missing"});
}

TEST_F(CheckpointTest, RefusesATensorInTwoShardsAndOneThatIsNotListed) {
  testing::write_safetensors(file("model-1.safetensors"), two_tensors());
  testing::write_safetensors(file("model-2.safetensors"), {{"b", two_tensors().at("b")}});
  write_index({{"a", "model-1.safetensors"}, {"b", "model-2.safetensors"}});
  expect_error({"model-2.safetensors", "\"b\"", "also in model-1.safetensors"});
  testing::write_safetensors(file("model-2.safetensors"), {{"c", two_tensors().at("b")}});
  write_index({{"a", "model-1.safetensors"}, {"c", "model-2.safetensors"}});
  expect_error({"model-1.safetensors", "\"b\"", "not listed"});
}

}  // namespace
}  // namespace replayeval
