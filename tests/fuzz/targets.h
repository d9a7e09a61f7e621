// What is fuzzed: readers of files that anyone may have made, fed from memory. Each function returns on any input,
// having refused it in the reader's own words or not; whatever else happens is a bug. libFuzzer drives them
// (scripts/fuzz.sh), and so does a short test with mutations of its own (fuzz_sample_test.cpp).
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace replayeval::fuzz {

using Input = std::span<const std::byte>;

// The first byte chooses: even, a whole file follows; odd, a header, to which its length and zeros for data are added,
// as many as the second byte says times 8.
void safetensors_header(Input input);
// Three parts with a zero byte between them: model.safetensors.index.json and the headers of two shards.
void shard_index(Input input);
void model_config(Input input);  // config.json of every architecture
void tokenizer_json(Input input);
// Rows of a task, the harness's or plain ones, a line each; what is read is also scored and written.
void task_rows(Input input);
void bench_file(Input input);  // of kernels or models; what is read is also made a page of

struct Target {
  std::string_view name;
  void (*run)(Input);
};
std::span<const Target> targets();

// While it lives, an allocation (without the address sanitizer: by operator new) that is larger than the input's size
// class allows, 64 times its size and 4 MiB, ends the program with a message.
class AllocationLimit {
 public:
  explicit AllocationLimit(std::size_t input_size);
  ~AllocationLimit();
  AllocationLimit(const AllocationLimit&) = delete;
  AllocationLimit& operator=(const AllocationLimit&) = delete;
};

}  // namespace replayeval::fuzz
