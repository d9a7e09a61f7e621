// How much memory loading takes beside what is loaded, and how much it reads.
#include <ATen/ATen.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <optional>
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

constexpr std::int64_t shard_bytes = 32 * mebibyte, stored_bytes = 12 * shard_bytes, model_bytes = 2 * stored_bytes;

std::vector<at::Tensor> load_all(const Checkpoint& checkpoint, const std::vector<std::string>& names) {
  WeightLoader loader(checkpoint, at::Device(at::kCPU), {""}, names.front());
  std::vector<at::Tensor> model;
  for (const std::string& name : names) model.push_back(loader.load(name, {4096, 2048}, at::kFloat));
  return model;
}

// The peak counts the pages of the files as well as what the loader holds, so that this says more than the promise.
TEST(WeightMemory, PeakIsTheModelAndLessThanTwoShards) {
  const TemporaryFolder folder;
  const std::vector<std::string> names = write_shards(folder.path());
  std::ofstream("/proc/self/clear_refs") << "5";  // the peak starts from here
  const std::int64_t before = status("VmRSS");
  if (std::abs(status("VmHWM") - before) > 8 * mebibyte)
    GTEST_SKIP() << "the kernel keeps its peak: nothing to measure";
  const Checkpoint checkpoint = Checkpoint::open(folder.path());
  const std::vector<at::Tensor> model = load_all(checkpoint, names);
  const std::int64_t above = status("VmHWM") - before - model_bytes;
  RecordProperty("bytes_above_the_model", std::to_string(above));
  EXPECT_LT(above, 2 * shard_bytes);
  EXPECT_GT(status("VmRSS") - before, model_bytes * 9 / 10) << "the model was not really there";
}

// Takes a file out of the page cache; the number of its pages that stayed.
std::int64_t forget(const std::filesystem::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  ::fsync(fd);
  ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  const auto size = static_cast<std::size_t>(std::filesystem::file_size(path));
  void* mapped = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, 0);
  std::vector<unsigned char> there(size / 4096 + 1);
  ::mincore(mapped, size, there.data());
  ::munmap(mapped, size);
  ::close(fd);
  return std::count_if(there.begin(), there.end(), [](unsigned char page) { return (page & 1U) != 0; });
}

// What this process had the disk read so far; absent where the kernel does not count it.
std::optional<std::int64_t> bytes_from_disk() {
  std::ifstream lines("/proc/self/io");
  std::int64_t bytes = 0;
  for (std::string word; lines >> word >> bytes;)
    if (word == "read_bytes:") return bytes;
  return std::nullopt;
}

// Nothing is read twice, and hardly anything that is not a weight: the disk's speed is the loader's.
TEST(WeightMemory, EveryByteComesFromTheDiskOnce) {
  const TemporaryFolder folder;
  const std::vector<std::string> names = write_shards(folder.path());
  std::int64_t cached = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    if (entry.path().extension() == ".safetensors") cached += forget(entry.path());
  const std::optional<std::int64_t> before = bytes_from_disk();
  if (cached != 0 || !before) GTEST_SKIP() << "the files stay in memory here: nothing is read from a disk";
  load_all(Checkpoint::open(folder.path()), names);
  const std::int64_t read = *bytes_from_disk() - *before;
  RecordProperty("bytes_from_disk", std::to_string(read));
  EXPECT_GE(read, stored_bytes) << "something was still in memory";
  EXPECT_LT(read, stored_bytes * 102 / 100);
}

}  // namespace
}  // namespace replayeval
