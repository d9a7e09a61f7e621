// How much memory loading takes beside what is loaded.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "eval/model/weights.h"
#include "tests/eval/checkpoint/checkpoint_folder.h"

namespace replayeval {
namespace {

constexpr std::int64_t mebibyte = std::int64_t{1} << 20;

// A line of /proc/self/status, in bytes.
std::int64_t status(const std::string& key) {
  std::ifstream lines("/proc/self/status");
  for (std::string word; lines >> word;)
    if (word == key + ":") {
      std::int64_t kibibytes = 0;
      lines >> kibibytes;
      return kibibytes * 1024;
    }
  return 0;
}

// Twelve shards of two tensors, 16 MiB each as bfloat16.
std::vector<std::string> write_shards(const std::filesystem::path& folder) {
  nlohmann::json weight_map;
  std::vector<std::string> names;
  testing::write_bytes(folder / "config.json", "{}");
  for (int shard = 0; shard < 12; ++shard) {
    testing::Tensors tensors;
    const std::string file = std::to_string(shard).append(".safetensors");
    for (const char* part : {".a", ".b"}) {
      names.push_back(std::to_string(shard).append(part));
      tensors[names.back()] = {"BF16", {4096, 2048}, std::string(16 * mebibyte, '\x3f')};
      weight_map[names.back()] = file;
    }
    testing::write_safetensors(folder / file, tensors);
  }
  testing::write_bytes(folder / "model.safetensors.index.json", nlohmann::json{{"weight_map", weight_map}}.dump());
  return names;
}

// The peak counts the pages of the files as well as what the loader holds, so that this says more than the promise.
TEST(WeightMemory, PeakIsTheModelAndLessThanTwoShards) {
  constexpr std::int64_t shard_bytes = 32 * mebibyte, model_bytes = 12 * 2 * 32 * mebibyte;
  const TemporaryFolder folder;
  const std::vector<std::string> names = write_shards(folder.path());
  std::ofstream("/proc/self/clear_refs") << "5";  // the peak starts from here
  const std::int64_t before = status("VmRSS");
  if (std::abs(status("VmHWM") - before) > 8 * mebibyte)
    GTEST_SKIP() << "the kernel keeps its peak: nothing to measure";
  const Checkpoint checkpoint = Checkpoint::open(folder.path());
  WeightLoader loader(checkpoint, at::Device(at::kCPU), {""}, names.front());
  std::vector<at::Tensor> model;
  for (const std::string& name : names) model.push_back(loader.load(name, {4096, 2048}, at::kFloat));
  const std::int64_t above = status("VmHWM") - before - model_bytes;
  RecordProperty("bytes_above_the_model", std::to_string(above));
  EXPECT_LT(above, 2 * shard_bytes);
  EXPECT_GT(status("VmRSS") - before, model_bytes * 9 / 10) << "the model was not really there";
}

}  // namespace
}  // namespace replayeval
