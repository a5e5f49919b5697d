// CUDA C++ without headers.
#define WF_KERNEL(threads, resident) WF_KERNEL_(threads, resident)
#define WF_KERNEL_(threads, resident) __global__ WF_BOUNDS_##resident(threads)
#define WF_BOUNDS_0(threads) __launch_bounds__(threads)
#define WF_BOUNDS_1(threads) __launch_bounds__(threads, 1)
#define WF_BOUNDS_2(threads) __launch_bounds__(threads, 2)
#define WF_BOUNDS_3(threads) __launch_bounds__(threads, 3)
#define WF_BOUNDS_4(threads) __launch_bounds__(threads, 4)
#define WF_BOUNDS_8(threads) __launch_bounds__(threads, 8)
#define WF_DEVICE __device__ __forceinline__
#define WF_SHARED __shared__
#define WF_DYNAMIC_SHARED(name) extern __shared__ __align__(16) unsigned char name[]
#define WF_RESTRICT __restrict__
#define WF_THREAD ((int)threadIdx.x)
#define WF_THREADS ((int)blockDim.x)
#define WF_BLOCK ((int)blockIdx.x)

WF_DEVICE void wf_sync() { __syncthreads(); }
WF_DEVICE void wf_sync_warp() { __syncwarp(); }
WF_DEVICE unsigned wf_shuffle_bits(unsigned value, int mask) { return __shfl_xor_sync(0xffffffffu, value, mask); }
WF_DEVICE unsigned wf_swap_if(unsigned* spot, unsigned expected, unsigned wanted) {
  return atomicCAS(spot, expected, wanted);
}
WF_DEVICE unsigned long long wf_swap_if(unsigned long long* spot, unsigned long long expected, unsigned long long wanted) {
  return atomicCAS(spot, expected, wanted);
}
WF_DEVICE void wf_add_at(float* spot, float value) { atomicAdd(spot, value); }
WF_DEVICE void wf_add_at(double* spot, double value) { atomicAdd(spot, value); }
WF_DEVICE float wf_float(unsigned bits) { return __uint_as_float(bits); }
WF_DEVICE unsigned wf_bits(float value) { return __float_as_uint(value); }
WF_DEVICE double wf_double(unsigned long long bits) { return __longlong_as_double((long long)bits); }
WF_DEVICE unsigned long long wf_bits(double value) { return (unsigned long long)__double_as_longlong(value); }
WF_DEVICE float wf_half_to_float(unsigned short bits) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
}
WF_DEVICE unsigned short wf_float_to_half(float value) {
  unsigned short bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
}
WF_DEVICE unsigned short wf_float_to_bfloat(float value) {
  unsigned short bits;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
}
#if __CUDA_ARCH__ >= 890
// The instruction saturates; what rounds to more than the largest number is NaN.
#define WF_HAS_F8E4M3
WF_DEVICE unsigned short wf_floats_to_f8e4m3(float low, float high) {
  unsigned short bits;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(bits) : "f"(high), "f"(low));
  if (!(fmaxf(fabsf(low), fabsf(high)) <= 464.0f)) {
    if (!(fabsf(low) <= 464.0f)) bits |= 0x7f;
    if (!(fabsf(high) <= 464.0f)) bits |= 0x7f00;
  }
  return bits;
}
WF_DEVICE unsigned char wf_float_to_f8e4m3(float value) { return (unsigned char)wf_floats_to_f8e4m3(value, 0.0f); }
#endif
#define WF_HAS_ROUND_BFLOAT
WF_DEVICE float wf_round_bfloat(float value) {
  unsigned bits;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(value), "f"(0.0f));
  return wf_float(bits);
}
WF_DEVICE float wf_fma(float a, float b, float c) { return __fmaf_rn(a, b, c); }
// A product that is rounded by itself.
WF_DEVICE float wf_product(float a, float b) { return __fmul_rn(a, b); }
WF_DEVICE double wf_product(double a, double b) { return __dmul_rn(a, b); }
// Within two ULPs; 0 where the result would be subnormal.
WF_DEVICE float wf_reciprocal(float value) { return __fdividef(1.0f, value); }
#define WF_HAS_MAX_NAN
WF_DEVICE float wf_max(float a, float b) {
  float value;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(value) : "f"(a), "f"(b));
  return value;
}
WF_DEVICE float wf_min(float a, float b) {
  float value;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(value) : "f"(a), "f"(b));
  return value;
}
WF_DEVICE unsigned long long wf_clock() {
  unsigned long long value;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(value));
  return value;
}
WF_DEVICE unsigned wf_processor() {
  unsigned value;
  asm volatile("mov.u32 %0, %smid;" : "=r"(value));
  return value;
}
WF_DEVICE int wf_popcount(unsigned long long value) { return __popcll(value); }
WF_DEVICE int wf_leading_zeros(unsigned long long value) { return __clzll((long long)value); }

#define WF_MATH(name, library)                               \
  WF_DEVICE float wf_##name(float x) { return library##f(x); } \
  WF_DEVICE double wf_##name(double x) { return library(x); }
#define WF_MATH2(name, library)                                          \
  WF_DEVICE float wf_##name(float a, float b) { return library##f(a, b); } \
  WF_DEVICE double wf_##name(double a, double b) { return library(a, b); }
