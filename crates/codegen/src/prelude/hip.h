// HIP C++ without headers: the compiler's builtins and the names of the device library.
#define WF_KERNEL(threads, resident) __attribute__((global)) __attribute__((amdgpu_flat_work_group_size(1, threads)))
#define WF_DEVICE __attribute__((device)) inline __attribute__((always_inline))
#define WF_SHARED __attribute__((shared))
#define WF_DYNAMIC_SHARED(name) extern __attribute__((shared)) __attribute__((aligned(16))) unsigned char name[]
#define WF_RESTRICT __restrict__
#define WF_THREAD ((int)__builtin_amdgcn_workitem_id_x())
#define WF_THREADS ((int)__builtin_amdgcn_workgroup_size_x())
#define WF_BLOCK ((int)__builtin_amdgcn_workgroup_id_x())

WF_DEVICE void wf_sync() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
WF_DEVICE void wf_sync_warp() {
  __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "wavefront");
  __builtin_amdgcn_wave_barrier();
}
WF_DEVICE unsigned wf_shuffle_bits(unsigned value, int mask) {
  const int lane = __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0u));
  return (unsigned)__builtin_amdgcn_ds_bpermute((lane ^ mask) << 2, (int)value);
}
template <class T>
WF_DEVICE T wf_swap_if(T* spot, T expected, T wanted) {
  __atomic_compare_exchange_n(spot, &expected, wanted, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return expected;
}
template <class T>
WF_DEVICE void wf_add_at(T* spot, T value) {
  __atomic_fetch_add(spot, value, __ATOMIC_RELAXED);
}
// A product that is rounded by itself.
template <class T>
WF_DEVICE T wf_product(T a, T b) {
#pragma clang fp contract(off)
  return a * b;
}
WF_DEVICE float wf_float(unsigned bits) { return __builtin_bit_cast(float, bits); }
WF_DEVICE unsigned wf_bits(float value) { return __builtin_bit_cast(unsigned, value); }
WF_DEVICE double wf_double(unsigned long long bits) { return __builtin_bit_cast(double, bits); }
WF_DEVICE unsigned long long wf_bits(double value) { return __builtin_bit_cast(unsigned long long, value); }
WF_DEVICE float wf_half_to_float(unsigned short bits) { return (float)__builtin_bit_cast(_Float16, bits); }
WF_DEVICE unsigned short wf_float_to_half(float value) {
  return __builtin_bit_cast(unsigned short, (_Float16)value);
}
WF_DEVICE unsigned short wf_float_to_bfloat(float value) {
  const unsigned bits = wf_bits(value);
  if (value != value) return (unsigned short)((bits >> 16) | 0x40);
  return (unsigned short)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}
WF_DEVICE float wf_fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
WF_DEVICE float wf_reciprocal(float value) { return 1.0f / value; }
// Copies into shared memory are synchronous.
WF_DEVICE void wf_copy16(void* to, const void* from, bool exists) {
  typedef unsigned wf_four __attribute__((ext_vector_type(4)));
  *(wf_four*)to = exists ? *(const wf_four*)from : wf_four(0u);
}
WF_DEVICE void wf_copy4(void* to, const void* from, bool exists) {
  *(unsigned*)to = exists ? *(const unsigned*)from : 0u;
}
WF_DEVICE void wf_copies_end() {}
template <int LEFT>
WF_DEVICE void wf_copies_wait() {}
WF_DEVICE unsigned long long wf_clock() { return __builtin_readcyclecounter(); }
WF_DEVICE unsigned wf_processor() { return 0; }
WF_DEVICE int wf_popcount(unsigned long long value) { return __builtin_popcountll(value); }
WF_DEVICE int wf_leading_zeros(unsigned long long value) { return value ? __builtin_clzll(value) : 64; }

#define WF_MATH(name, library)                                                      \
  extern "C" __attribute__((device)) float __ocml_##library##_f32(float);            \
  extern "C" __attribute__((device)) double __ocml_##library##_f64(double);          \
  WF_DEVICE float wf_##name(float x) { return __ocml_##library##_f32(x); }           \
  WF_DEVICE double wf_##name(double x) { return __ocml_##library##_f64(x); }
#define WF_MATH2(name, library)                                                            \
  extern "C" __attribute__((device)) float __ocml_##library##_f32(float, float);            \
  extern "C" __attribute__((device)) double __ocml_##library##_f64(double, double);         \
  WF_DEVICE float wf_##name(float a, float b) { return __ocml_##library##_f32(a, b); }      \
  WF_DEVICE double wf_##name(double a, double b) { return __ocml_##library##_f64(a, b); }
