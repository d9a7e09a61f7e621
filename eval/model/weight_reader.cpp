#include "eval/model/weight_reader.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <optional>

#include "eval/checkpoint/float8_scales.h"
#include "eval/checkpoint/mapped_file.h"

namespace replayeval {
namespace {

constexpr std::int64_t chunk_bytes = std::int64_t{16} << 20;
constexpr std::int64_t ahead_bytes = 4 * chunk_bytes;  // read from the disk while a chunk is converted

std::string index_text(std::int64_t flat, const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> index(shape.size());
  for (std::size_t d = shape.size(); d-- > 0; flat /= shape[d]) index[d] = flat % shape[d];
  std::string text = "[";
  for (std::size_t i = 0; i < index.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(index[i]);
  return text + "]";
}

at::ScalarType stored_type(const TensorView& view) {
  if (view.dtype == "F32") return at::kFloat;
  if (view.dtype == "BF16") return at::kBFloat16;
  if (view.dtype == "F16") return at::kHalf;
  if (view.dtype == "F8_E4M3") return at::kFloat8_e4m3fn;
  throw CheckpointError(place_of(view) + " has dtype " + view.dtype + "; expected F32, BF16, F16 or F8_E4M3");
}

// True if an element has all exponent bits set: infinity or NaN. Plain loops over words, which compilers vectorise.
template <typename Word>
bool any_non_finite(const void* data, std::int64_t elements, Word exponent) {
  const auto* words = static_cast<const Word*>(data);
  std::atomic<bool> found = false;
  at::parallel_for(0, elements, 1 << 16, [&](std::int64_t begin, std::int64_t end) {
    Word all = 0;
    for (std::int64_t i = begin; i < end; ++i) all |= static_cast<Word>((words[i] & exponent) == exponent);
    if (all != 0) found = true;
  });
  return found;
}

bool all_finite(const at::Tensor& part) {
  if (!part.is_cpu()) return at::isfinite(part).all().item<bool>();
  const void* data = part.const_data_ptr();
  switch (part.scalar_type()) {
    case at::kFloat:
      return !any_non_finite<std::uint32_t>(data, part.numel(), 0x7f800000U);
    case at::kBFloat16:
      return !any_non_finite<std::uint16_t>(data, part.numel(), 0x7f80U);
    case at::kHalf:
      return !any_non_finite<std::uint16_t>(data, part.numel(), 0x7c00U);
    default:  // float8_e4m3: has no infinity, and one NaN of either sign
      return !any_non_finite<std::uint8_t>(data, part.numel(), 0x7fU);
  }
}

// The first element of a flat CPU tensor that is not finite.
std::int64_t first_non_finite(const at::Tensor& flat) {
  return at::logical_not(at::isfinite(flat.to(at::kFloat))).to(at::kByte).argmax().item<std::int64_t>();
}

// Called once something is wrong: says what, and where. `begin`: the elements before `stored`, a part of the view.
[[noreturn]] void refuse(const TensorView& view, const at::Tensor& stored, std::int64_t begin,
                         const at::Tensor& converted) {
  if (!all_finite(stored))
    throw CheckpointError(place_of(view) + " holds a NaN or infinity, first at " +
                          index_text(begin + first_non_finite(stored), view.shape) + "; expected finite weights");
  throw CheckpointError(place_of(view) + " does not fit " + std::string(c10::toString(converted.scalar_type())) +
                        ": infinite at " + index_text(begin + first_non_finite(converted.cpu()), view.shape) +
                        " after conversion; expected another compute dtype");
}

// Elements [begin, begin + count) of the view as a flat tensor on its mapped bytes; copied where these are not aligned
// for their type, which the format does not promise.
at::Tensor part_of(const TensorView& view, std::int64_t begin, std::int64_t count) {
  const at::ScalarType type = stored_type(view);
  const auto size = static_cast<std::int64_t>(c10::elementSize(type));
  const std::byte* data = view.bytes.data() + begin * size;
  const auto options = at::TensorOptions().dtype(type);
  if (reinterpret_cast<std::uintptr_t>(data) % static_cast<std::uintptr_t>(size) == 0)
    return at::from_blob(const_cast<std::byte*>(data), {count}, options);
  // Not ATen's allocator: glibc before 2.38 does not reuse what it freed for aligned requests, and the heap would grow.
  const auto bytes = static_cast<std::size_t>(count * size);
  std::shared_ptr<std::byte[]> copy(new std::byte[bytes]);
  std::memcpy(copy.get(), data, bytes);
  return at::from_blob(
      copy.get(), {count}, [copy](void* /*memory*/) {}, options);
}

std::span<const std::byte> bytes_at(const TensorView& view, std::int64_t begin, std::int64_t count) {
  const auto size = static_cast<std::int64_t>(view.bytes.size());
  begin = std::min(begin, size);
  return view.bytes.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(std::min(count, size - begin)));
}

void copy_bytes(const at::Tensor& from, const at::Tensor& to) {
  const auto* source = static_cast<const char*>(from.const_data_ptr());
  auto* target = static_cast<char*>(to.data_ptr());
  at::parallel_for(0, static_cast<std::int64_t>(from.nbytes()), 1 << 20, [&](std::int64_t begin, std::int64_t end) {
    std::memcpy(target + begin, source + begin, static_cast<std::size_t>(end - begin));
  });
}

// Two buffers of a chunk each. A buffer is written again only when the copy out of it is over.
class Staging {
 public:
  Staging(const at::Device& device, at::ScalarType type) : device_(device) {
    const auto elements = chunk_bytes / static_cast<std::int64_t>(c10::elementSize(type));
    for (Buffer& buffer : buffers_)
      buffer.memory = at::empty({elements}, at::TensorOptions().dtype(type).pinned_memory(device.is_cuda()));
  }

  // The part's elements on the device, in their stored type.
  at::Tensor send(const at::Tensor& part) {
    Buffer& buffer = buffers_[next_ ^= 1U];
    if (buffer.sent) buffer.sent->synchronize();
    const at::Tensor filled = buffer.memory.narrow(0, 0, part.numel());
    copy_bytes(part, filled);
    if (!device_.is_cuda()) return filled.clone();
    at::Tensor there = filled.to(device_, /*non_blocking=*/true);
    if (!buffer.sent) buffer.sent.emplace(at::kCUDA);
    buffer.sent->record(c10::impl::VirtualGuardImpl(at::kCUDA).getStream(device_));
    return there;
  }

 private:
  struct Buffer {
    at::Tensor memory;
    std::optional<c10::Event> sent;
  };
  at::Device device_;
  std::array<Buffer, 2> buffers_;
  std::uint32_t next_ = 0;
};

// Whether a finite value of `from` can become infinite in `to`.
bool may_overflow(at::ScalarType from, at::ScalarType to) {
  return from != to && (to == at::kHalf || (to == at::kBFloat16 && from == at::kFloat));
}

// Calls use(begin, part) for each chunk of the view's elements; asks the disk for what comes next, frees what is done.
template <typename Use>
void for_each_chunk(const TensorView& view, std::int64_t chunk, const Use& use) {
  const auto size = static_cast<std::int64_t>(c10::elementSize(stored_type(view)));
  const auto elements = static_cast<std::int64_t>(view.bytes.size()) / size;
  will_need(bytes_at(view, 0, ahead_bytes));
  for (std::int64_t begin = 0; begin < elements; begin += chunk) {
    const std::int64_t count = std::min(chunk, elements - begin);
    will_need(bytes_at(view, begin * size + ahead_bytes, count * size));
    use(begin, part_of(view, begin, count));
    release(bytes_at(view, begin * size, count * size));
  }
}

void read_plain(const TensorView& view, const at::Tensor& flat, Transfer transfer) {
  const at::ScalarType type = stored_type(view);
  const bool check_result = may_overflow(type, flat.scalar_type());
  std::optional<Staging> staging;
  if (transfer == Transfer::staged) staging.emplace(flat.device(), type);
  const std::int64_t chunk = chunk_bytes / static_cast<std::int64_t>(c10::elementSize(type));
  for_each_chunk(view, chunk, [&](std::int64_t begin, const at::Tensor& part) {
    at::Tensor target = flat.narrow(0, begin, part.numel());
    target.copy_(staging ? staging->send(part) : part);
    if (!all_finite(part) || (check_result && !all_finite(target))) refuse(view, part, begin, target);
  });
}

// The scale, float32, in a shape that a run of `rows` rows from `row` on of a weight [matrices, out, in] multiplies
// with.
at::Tensor spread(const at::Tensor& scale, const ScaleForm& form, std::int64_t matrix, std::int64_t row,
                  std::int64_t rows, std::int64_t columns) {
  switch (form.layout) {
    case ScaleLayout::tensor:
      return scale.flatten();
    case ScaleLayout::matrix:
      return scale.flatten()[matrix];
    case ScaleLayout::channel:
      return scale.flatten(1)[matrix].narrow(0, row, rows).unsqueeze(1);
    case ScaleLayout::block:
      break;
  }
  const std::int64_t first = row / form.rows, last = (row + rows - 1) / form.rows;
  const at::Tensor blocks = scale[matrix].narrow(0, first, last - first + 1);
  return blocks.repeat_interleave(form.rows, 0)
      .narrow(0, row - first * form.rows, rows)
      .repeat_interleave(form.columns, 1)
      .narrow(1, 0, columns);
}

at::Tensor read_scale(const TensorView& view, const at::Device& device) {
  const at::ScalarType type = stored_type(view);
  if (type == at::kFloat8_e4m3fn)
    throw CheckpointError(place_of(view) + " has dtype F8_E4M3; expected a scale in F32, BF16 or F16");
  at::Tensor scale = at::empty(view.shape, at::kFloat);
  read_plain(view, scale.flatten(), Transfer::mapped);
  return scale.to(device);
}

// Rows are taken matrix by matrix, a few at a time, so that the float32 products stay small.
void read_scaled(const TensorView& view, const at::Tensor& scale, const ScaleForm& form, const at::Tensor& flat) {
  const std::int64_t columns = view.shape.empty() ? 1 : view.shape.back();
  const std::int64_t rows = view.shape.size() < 2 ? 1 : view.shape[view.shape.size() - 2];
  const std::int64_t matrices = flat.numel() / std::max<std::int64_t>(1, rows * columns);
  at::Tensor by_matrix = scale;
  if (form.layout == ScaleLayout::block) by_matrix = scale.reshape({matrices, -1, scale.size(-1)});
  if (form.layout == ScaleLayout::channel) by_matrix = scale.reshape({matrices, rows});
  const std::int64_t rows_at_once = std::max<std::int64_t>(1, chunk_bytes / 4 / 4 / std::max<std::int64_t>(1, columns));
  for (std::int64_t matrix = 0; matrix < matrices; ++matrix)
    for (std::int64_t row = 0; row < rows; row += rows_at_once) {
      const std::int64_t count = std::min(rows_at_once, rows - row), begin = (matrix * rows + row) * columns;
      const at::Tensor part = part_of(view, begin, count * columns);
      will_need(bytes_at(view, begin + count * columns, count * columns));
      if (!all_finite(part)) refuse(view, part, begin, part);
      at::Tensor product = part.to(flat.device()).to(at::kFloat).view({count, columns});
      product.mul_(spread(by_matrix, form, matrix, row, count, columns));
      at::Tensor target = flat.narrow(0, begin, count * columns);
      target.copy_(product.flatten());
      if (!all_finite(target)) refuse(view, part, begin, target);
      release(bytes_at(view, begin, count * columns));
    }
}

}  // namespace

std::string place_of(const TensorView& view) { return view.file.string() + ": tensor \"" + view.name + "\""; }

Transfer transfer_to(const at::Device& device) { return device.is_cpu() ? Transfer::mapped : Transfer::staged; }

void read_weight(const Checkpoint& checkpoint, const TensorView& view, const TensorView* scale,
                 const at::Tensor& destination, Transfer transfer) {
  const bool float8 = stored_type(view) == at::kFloat8_e4m3fn;
  if (float8 && scale == nullptr)
    throw CheckpointError(place_of(view) + " has dtype F8_E4M3, but no scale is there; expected tensor \"" + view.name +
                          "_scale\" or \"" + view.name + "_scale_inv\"");
  const at::Tensor flat = destination.view({-1});
  if (flat.numel() == 0) return;
  if (float8)
    read_scaled(view, read_scale(*scale, flat.device()), scale_form(checkpoint, view, *scale), flat);
  else
    read_plain(view, flat, transfer);
}

}  // namespace replayeval
