#include "kernels/types.h"

#include <array>

namespace replayeval {
namespace {

struct DtypeRow {
  Dtype dtype;
  std::string_view name;
  std::size_t size;
};

constexpr std::array<DtypeRow, 3> kDtypes = {{
    {Dtype::float32, "float32", 4},
    {Dtype::bfloat16, "bfloat16", 2},
    {Dtype::float16, "float16", 2},
}};

struct OverflowRow {
  Overflow overflow;
  std::string_view name;
};

constexpr std::array<OverflowRow, 2> kOverflows = {{
    {Overflow::infinity, "infinity"},
    {Overflow::saturate, "saturate"},
}};

}  // namespace

std::string_view dtype_name(Dtype dtype) {
  for (const DtypeRow& row : kDtypes) {
    if (row.dtype == dtype) return row.name;
  }
  return "unknown dtype";
}

std::optional<Dtype> parse_dtype(std::string_view name) {
  for (const DtypeRow& row : kDtypes) {
    if (row.name == name) return row.dtype;
  }
  return std::nullopt;
}

std::size_t dtype_size(Dtype dtype) {
  for (const DtypeRow& row : kDtypes) {
    if (row.dtype == dtype) return row.size;
  }
  return 0;
}

std::string_view overflow_name(Overflow overflow) {
  for (const OverflowRow& row : kOverflows) {
    if (row.overflow == overflow) return row.name;
  }
  return "unknown overflow";
}

std::optional<Overflow> parse_overflow(std::string_view name) {
  for (const OverflowRow& row : kOverflows) {
    if (row.name == name) return row.overflow;
  }
  return std::nullopt;
}

bool built_with_cuda() {
#ifdef REPLAYEVAL_WITH_CUDA
  return true;
#else
  return false;
#endif
}

}  // namespace replayeval
