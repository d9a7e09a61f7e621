// What every family checks at the door of its kernels. Each check throws std::invalid_argument with what was given and
// what is allowed.
#pragma once

#include "kernels/decode.h"

#include <stdexcept>
#include <string>

namespace replayeval {

// Throws std::invalid_argument; messages begin with the public function's name ("mamba2::exact").
class Door {
 public:
  explicit Door(const char* function) : function_(function) {}

  [[noreturn]] void refuse(const std::string& message) const {
    throw std::invalid_argument(std::string(function_) + ": " + message);
  }
  void expect(bool holds, const std::string& message) const {
    if (!holds) refuse(message);
  }
  void present(const void* pointer, const char* name) const {
    if (pointer == nullptr) refuse(std::string(name) + " is null");
  }
  void aligned(const void* pointer, const char* name) const {
    present(pointer, name);
    if (reinterpret_cast<std::uintptr_t>(pointer) % kAlignment != 0) {
      refuse(std::string(name) + " must be aligned to " + std::to_string(kAlignment) + " bytes");
    }
  }
  void stride(std::int64_t given, std::int64_t width, const char* name) const {
    if (given < width) {
      refuse(std::string(name) + " is " + std::to_string(given) + ", smaller than the row of " + std::to_string(width) +
             " elements");
    }
  }
  void dtype(Dtype given, const char* name) const {
    if (dtype_size(given) == 0) {
      refuse(std::string(name) + " is no known dtype (allowed: float32, bfloat16, float16)");
    }
  }

 private:
  static constexpr std::uintptr_t kAlignment = 16;  // of one vector load
  const char* function_;
};

void check_multiple(const Door& door, std::int64_t given, std::int64_t most, const char* name);
void check_block(const Door& door, const DecodeBlock& block);
// Slot numbers and cursors can be read only where they lie: on the CPU. (A bad one on a GPU makes its row's y NaN.)
void check_slots(const Door& door, const Device& device, const DecodeBlock& block, std::int64_t slots);
void check_cursors(const Door& door, const Device& device, const DecodeBlock& block, std::int64_t buffer_len,
                   const std::int32_t* cursor);
void check_state(const Door& door, const State& state);
void check_buffer_len(const Door& door, std::int64_t buffer_len);
void check_form(const Door& door, std::int64_t buffer_len, Route route, Flush flush, Dtype ring_dtype);

// Throws std::runtime_error when the call is for CUDA and this build has no CUDA kernels. `function` as Door has it.
void check_device(const Device& device, const std::string& function);

}  // namespace replayeval
