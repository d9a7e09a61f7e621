// Which Highway targets the CPU kernels are compiled for: AVX2 and AVX-512 on x86-64, NEON on Arm, and the portable
// fallback. Every sum has one order whatever the vector width (chunk-inl.h), so targets with fused multiply-add agree.
// Include before any Highway header.
#pragma once

#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#endif
