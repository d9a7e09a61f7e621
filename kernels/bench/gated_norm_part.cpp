#include "kernels/bench/fill.h"
#include "kernels/bench/mixer_part.h"
#include "kernels/bench/output_check.h"

#include <set>

namespace replayeval::bench {
namespace {

using Stored = std::vector<std::uint16_t>;  // bfloat16

class GatedNormPart : public MixerPart {
 public:
  GatedNormPart(BenchDevice& device, const MixerPartSizes& sizes) : device_(device), sizes_(sizes) {
    const MixerWidths& w = sizes.widths;
    const auto bytes_of = [&](std::int64_t width) { return static_cast<std::size_t>(sizes.rows() * width) * 2; };
    for (std::size_t i = 0; i < rotated_copies(static_cast<std::size_t>(bytes())); ++i) {
      void* y = device.allocate(bytes_of(w.inner));
      void* projected = device.allocate(bytes_of(w.projection));
      fill_normal(device, y, bytes_of(w.inner), Dtype::bfloat16);
      fill_normal(device, projected, bytes_of(w.projection), Dtype::bfloat16, 1);
      GatedNorm norm;
      norm.rows = sizes.rows();
      norm.width = w.inner;
      norm.group_size = w.group;
      norm.weight = make_uniform(device, w.inner, 2);
      norm.y = y;
      norm.y_stride = w.inner;
      norm.y_dtype = norm.dtype = Dtype::bfloat16;
      norm.z = static_cast<std::uint16_t*>(projected) + w.gate_begin;
      norm.z_stride = w.projection;
      norm.out = device.allocate(bytes_of(w.inner));
      norm.out_stride = w.inner;
      norm.form = w.form;
      norm.activation = w.activation;
      copies_.push_back(norm);
    }
  }

  std::size_t copies() const override { return copies_.size(); }
  void run(std::size_t copy) override { gated_norm(device_.device(), copies_[copy]); }
  double bytes() const override { return static_cast<double>(sizes_.widths.inner * (3 * 2 * sizes_.rows() + 4)); }

  double output_error() override {
    run(0);
    double worst = 0.0;
    for (const std::int64_t row : std::set<std::int64_t>{0, sizes_.rows() / 2, sizes_.rows() - 1}) {
      const double error = error_of(row);
      if (!(error <= worst)) worst = error;
    }
    return worst;
  }

 private:
  Stored row_of(const void* data, std::int64_t stride, std::int64_t row) const {
    return download_values(device_, static_cast<const std::uint16_t*>(data) + row * stride, sizes_.widths.inner);
  }

  double error_of(std::int64_t row) const {
    GatedNorm norm = copies_[0];
    const Stored y = row_of(norm.y, norm.y_stride, row), z = row_of(norm.z, norm.z_stride, row);
    const Stored found = row_of(norm.out, norm.out_stride, row);
    const std::vector<float> weight = download_values(device_, norm.weight, norm.width);
    Stored out(found.size());
    norm.rows = 1;
    norm.weight = weight.data();
    norm.y = y.data();
    norm.z = z.data();
    norm.out = out.data();
    gated_norm({}, norm);
    return relative_error(widened(found), widened(out));
  }

  BenchDevice& device_;
  MixerPartSizes sizes_;
  std::vector<GatedNorm> copies_;
};

}  // namespace

std::unique_ptr<MixerPart> make_gated_norm_part(BenchDevice& device, const MixerPartSizes& sizes) {
  return std::make_unique<GatedNormPart>(device, sizes);
}

}  // namespace replayeval::bench
