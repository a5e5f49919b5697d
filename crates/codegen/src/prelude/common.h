// Element types that are stored narrower than they are computed.
struct wf_f16 {
  unsigned short bits;
};
struct wf_bf16 {
  unsigned short bits;
};
struct wf_f8e4m3 {
  unsigned char bits;
};
struct wf_f8e5m2 {
  unsigned char bits;
};
// A code in the lower bits of a byte; kernels read such and write none.
struct wf_i4 {
  unsigned char bits;
};
// Floats of 8 bits. Exponent and mantissa lie one behind the other: a rounding that carries into the exponent is right as it is. Numbers
// below the normal ones are multiples of the least, as f32 from a power of two on are.
WF_DEVICE float wf_f8e4m3_to_float(unsigned bits) {
  const float size = wf_float((bits & 0x7fu) << 20) * 1.329227995784916e36f;
  const unsigned sign = (bits & 0x80u) << 24;
  return (bits & 0x7fu) == 0x7fu ? wf_float(0x7fc00000u | sign) : wf_float(wf_bits(size) | sign);
}
WF_DEVICE float wf_f8e5m2_to_float(unsigned bits) { return wf_half_to_float((unsigned short)(bits << 8)); }
#ifndef WF_HAS_F8E4M3
WF_DEVICE unsigned char wf_float_to_f8e4m3(float value) {
  const unsigned bits = wf_bits(value), size = bits & 0x7fffffffu;
  const unsigned normal = (size + 0x7ffffu + (size >> 20 & 1u) >> 20) - 960u;
  const unsigned small = wf_bits(wf_float(size) + 16384.0f) - 0x46800000u;
  const unsigned code = size < 0x3c800000u ? small : size > 0x43e80000u ? 0x7fu : normal;
  return (unsigned char)(code | (bits >> 24 & 0x80u));
}
#endif
WF_DEVICE unsigned char wf_float_to_f8e5m2(float value) {
  const unsigned bits = wf_bits(value), size = bits & 0x7fffffffu;
  const unsigned normal = (size + 0xfffffu + (size >> 21 & 1u) >> 21) - 448u;
  const unsigned small = wf_bits(wf_float(size) + 128.0f) - 0x43000000u;
  const unsigned code = size > 0x7f800000u ? 0x7eu : size < 0x38800000u ? small : normal > 0x7bu ? 0x7cu : normal;
  return (unsigned char)(code | (bits >> 24 & 0x80u));
}
template <class T, int N>
struct alignas(sizeof(T) * N) wf_vec {
  T x[N];
};
template <class T>
WF_DEVICE T wf_get(T value) { return value; }
WF_DEVICE float wf_get(wf_f16 value) { return wf_half_to_float(value.bits); }
WF_DEVICE float wf_get(wf_bf16 value) { return wf_float((unsigned)value.bits << 16); }
WF_DEVICE signed char wf_get(wf_i4 value) { return (signed char)(((value.bits & 15) ^ 8) - 8); }
WF_DEVICE float wf_get(wf_f8e4m3 value) { return wf_f8e4m3_to_float(value.bits); }
WF_DEVICE float wf_get(wf_f8e5m2 value) { return wf_f8e5m2_to_float(value.bits); }
template <class T>
struct wf_putter {
  static WF_DEVICE T put(T value) { return value; }
};
template <>
struct wf_putter<wf_f16> {
  static WF_DEVICE wf_f16 put(float value) { return wf_f16{wf_float_to_half(value)}; }
};
template <>
struct wf_putter<wf_bf16> {
  static WF_DEVICE wf_bf16 put(float value) { return wf_bf16{wf_float_to_bfloat(value)}; }
};
template <>
struct wf_putter<wf_f8e4m3> {
  static WF_DEVICE wf_f8e4m3 put(float value) { return wf_f8e4m3{wf_float_to_f8e4m3(value)}; }
};
template <>
struct wf_putter<wf_f8e5m2> {
  static WF_DEVICE wf_f8e5m2 put(float value) { return wf_f8e5m2{wf_float_to_f8e5m2(value)}; }
};
template <class T>
struct wf_pair_putter {
  static WF_DEVICE wf_vec<T, 2> put(float low, float high) {
    return wf_vec<T, 2>{{wf_putter<T>::put(low), wf_putter<T>::put(high)}};
  }
};
#ifdef WF_HAS_F8E4M3
template <>
struct wf_pair_putter<wf_f8e4m3> {
  static WF_DEVICE wf_vec<wf_f8e4m3, 2> put(float low, float high) {
    const unsigned short bits = wf_floats_to_f8e4m3(low, high);
    return wf_vec<wf_f8e4m3, 2>{{wf_f8e4m3{(unsigned char)bits}, wf_f8e4m3{(unsigned char)(bits >> 8)}}};
  }
};
#endif
template <class T, class C>
WF_DEVICE T wf_put(C value) { return wf_putter<T>::put(value); }
template <class T, int N>
WF_DEVICE wf_vec<T, N> wf_put_all(const wf_vec<float, N>& values) {
  wf_vec<T, N> all;
#pragma unroll
  for (int at = 0; at < N; at += 2) {
    const wf_vec<T, 2> both = wf_pair_putter<T>::put(values.x[at], values.x[at + 1]);
    all.x[at] = both.x[0];
    all.x[at + 1] = both.x[1];
  }
  return all;
}
template <class T>
WF_DEVICE float wf_round(float value) { return wf_get(wf_put<T>(value)); }
#ifdef WF_HAS_ROUND_BFLOAT
template <>
WF_DEVICE float wf_round<wf_bf16>(float value) { return wf_round_bfloat(value); }
#endif

// Floating point: the larger of two is NaN if one is, and zeros are ordered by sign.
#define WF_FLOAT(T, BITS, SIGN, OF_BITS)                                                                    \
  WF_DEVICE T wf_add(T a, T b) { return a + b; }                                                    \
  WF_DEVICE T wf_sub(T a, T b) { return a - b; }                                                    \
  WF_DEVICE T wf_mul(T a, T b) { return a * b; }                                                    \
  WF_DEVICE T wf_div(T a, T b) { return a / b; }                                                    \
  WF_DEVICE T wf_neg(T a) { return -a; }                                                            \
  WF_DEVICE T wf_abs(T a) { return OF_BITS(wf_bits(a) & SIGN); }                                     \
  WF_DEVICE T wf_sign(T a) { return a > 0 ? (T)1 : a < 0 ? (T)-1 : a; }                             \
  WF_DEVICE bool wf_isfinite(T a) { return a - a == 0; }                                            \
  WF_DEVICE BITS wf_total(T a) {                                                                    \
    const BITS bits = (BITS)wf_bits(a);                                                             \
    return bits < 0 ? (BITS)(bits ^ SIGN) : bits;                                                   \
  }
#define WF_EXTREMES(T)                                                                             \
  WF_DEVICE T wf_max(T a, T b) {                                                                    \
    return a != a ? a : b != b ? b : a > b ? a : b > a ? b : (long long)wf_bits(a) == 0 ? a : b;    \
  }                                                                                                \
  WF_DEVICE T wf_min(T a, T b) {                                                                    \
    return a != a ? a : b != b ? b : a < b ? a : b < a ? b : (long long)wf_bits(a) == 0 ? b : a;    \
  }
WF_FLOAT(float, int, 0x7fffffff, wf_float)
WF_FLOAT(double, long long, 0x7fffffffffffffffll, wf_double)
WF_DEVICE float wf_logistic(float a) { return wf_reciprocal(1.0f + wf_exp(-a)); }
WF_DEVICE double wf_logistic(double a) { return 1.0 / (1.0 + wf_exp(-a)); }

// GELU by the error function, by the hyperbolic tangent, and the gradient of the latter.
WF_DEVICE float wf_gelu(float x) { return 0.5f * x * (1.0f + wf_erf(x * 0.707106781f)); }
WF_DEVICE float wf_gelu_tangent(float x) { return wf_tanh(0.797884561f * (x + 0.044715f * x * x * x)); }
WF_DEVICE float wf_gelu_tanh(float x) { return 0.5f * x * (1.0f + wf_gelu_tangent(x)); }
WF_DEVICE float wf_gelu_tanh_gradient(float given, float x) {
  const float t = wf_gelu_tangent(x);
  return given * (0.5f * (1.0f + t) + 0.398942280f * x * (1.0f - t * t) * (1.0f + 0.134145f * x * x));
}

// A divisor that many elements share, scaled to [0.5, 1) so that no step overflows or loses bits before the quotient
// does. Quotients are correctly rounded but for rare errors in the last place; subnormal ones are off by a few units.
struct wf_divisor {
  float scale, by, inverse;
  WF_DEVICE explicit wf_divisor(float value) {
    const unsigned bits = wf_bits(value), power = bits >> 23 & 0xffu;
    scale = wf_float((bits & 0x80000000u) | (power > 252u ? 1u : 253u - power) << 23);
    by = value * scale;
    inverse = wf_reciprocal(by);
  }
};
// Within two ULPs.
WF_DEVICE float wf_div_near(float a, const wf_divisor& divisor) { return a * divisor.scale * divisor.inverse; }
WF_DEVICE float wf_div(float a, const wf_divisor& divisor) {
  const float scaled = a * divisor.scale, near = scaled * divisor.inverse;
  const float rest = wf_fma(-divisor.by, near, scaled);
  // For zero, infinite or NaN the first quotient is returned.
  return wf_bits(rest) * 2u - 1u < 0xfeffffffu ? wf_fma(rest, divisor.inverse, near) : near;
}
#ifndef WF_HAS_MAX_NAN
WF_EXTREMES(float)
#endif
WF_EXTREMES(double)

// Integers wrap around; a quotient by zero has all bits set, a remainder by zero is the dividend.
#define WF_INTEGER(T, U, BITS, SIGNED)                                                                              \
  WF_DEVICE T wf_add(T a, T b) { return (T)((U)a + (U)b); }                                                          \
  WF_DEVICE T wf_sub(T a, T b) { return (T)((U)a - (U)b); }                                                          \
  WF_DEVICE T wf_mul(T a, T b) { return (T)((unsigned long long)a * (unsigned long long)b); }                        \
  WF_DEVICE T wf_div(T a, T b) {                                                                                     \
    return b == 0 ? (T)-1 : SIGNED && b == (T)-1 ? (T)((U)0 - (U)a) : (T)(a / b);                                    \
  }                                                                                                                  \
  WF_DEVICE T wf_rem(T a, T b) { return b == 0 ? a : SIGNED && b == (T)-1 ? (T)0 : (T)(a % b); }                     \
  WF_DEVICE T wf_max(T a, T b) { return a > b ? a : b; }                                                             \
  WF_DEVICE T wf_min(T a, T b) { return a < b ? a : b; }                                                             \
  WF_DEVICE T wf_and(T a, T b) { return (T)(a & b); }                                                                \
  WF_DEVICE T wf_or(T a, T b) { return (T)(a | b); }                                                                 \
  WF_DEVICE T wf_xor(T a, T b) { return (T)(a ^ b); }                                                                \
  WF_DEVICE T wf_not(T a) { return (T)~a; }                                                                          \
  WF_DEVICE T wf_neg(T a) { return (T)((U)0 - (U)a); }                                                               \
  WF_DEVICE T wf_abs(T a) { return a < (T)1 ? (T)((U)0 - (U)a) : a; }                                                \
  WF_DEVICE T wf_sign(T a) { return a > (T)0 ? (T)1 : a == (T)0 ? (T)0 : (T)-1; }                                    \
  WF_DEVICE T wf_popcnt(T a) { return (T)wf_popcount((unsigned long long)(U)a); }                                    \
  WF_DEVICE T wf_clz(T a) { return (T)(wf_leading_zeros((unsigned long long)(U)a) - (64 - BITS)); }                  \
  WF_DEVICE T wf_shl(T a, T b) { return (U)b >= BITS ? (T)0 : (T)((unsigned long long)a << (U)b); }                  \
  WF_DEVICE T wf_shr(T a, T b) { return (U)b >= BITS ? (T)0 : (T)((U)a >> (U)b); }                                   \
  WF_DEVICE T wf_sar(T a, T b) {                                                                                     \
    const int by = (U)b >= BITS ? BITS - 1 : (int)b;                                                                 \
    return (T)(((long long)((unsigned long long)a << (64 - BITS)) >> (64 - BITS)) >> by);                            \
  }                                                                                                                  \
  WF_DEVICE T wf_pow(T base, T exponent) {                                                                           \
    if (SIGNED && exponent < (T)1 && exponent != (T)0)                                                               \
      return base == (T)1 ? (T)1 : base == (T)-1 ? (T)(exponent & 1 ? -1 : 1) : (T)0;                                \
    unsigned long long result = 1, square = (unsigned long long)base, left = (unsigned long long)exponent;           \
    for (; left != 0; left >>= 1) {                                                                                  \
      if (left & 1) result *= square;                                                                                \
      square *= square;                                                                                              \
    }                                                                                                                \
    return (T)result;                                                                                                \
  }
WF_INTEGER(signed char, unsigned char, 8, true)
WF_INTEGER(unsigned char, unsigned char, 8, false)
WF_INTEGER(short, unsigned short, 16, true)
WF_INTEGER(unsigned short, unsigned short, 16, false)
WF_INTEGER(int, unsigned int, 32, true)
WF_INTEGER(unsigned int, unsigned int, 32, false)
WF_INTEGER(long long, unsigned long long, 64, true)
WF_INTEGER(unsigned long long, unsigned long long, 64, false)

// Booleans: addition is or, multiplication is and.
WF_DEVICE bool wf_add(bool a, bool b) { return a || b; }
WF_DEVICE bool wf_sub(bool a, bool b) { return a != b; }
WF_DEVICE bool wf_mul(bool a, bool b) { return a && b; }
WF_DEVICE bool wf_div(bool a, bool b) { return a && b; }
WF_DEVICE bool wf_rem(bool a, bool) { return a; }
WF_DEVICE bool wf_pow(bool a, bool b) { return a || !b; }
WF_DEVICE bool wf_max(bool a, bool b) { return a || b; }
WF_DEVICE bool wf_min(bool a, bool b) { return a && b; }
WF_DEVICE bool wf_and(bool a, bool b) { return a && b; }
WF_DEVICE bool wf_or(bool a, bool b) { return a || b; }
WF_DEVICE bool wf_xor(bool a, bool b) { return a != b; }
WF_DEVICE bool wf_not(bool a) { return !a; }

// Conversions: floats truncate and saturate, NaN is 0, integers wrap around.
template <class T>
struct wf_bounds;
#define WF_BOUNDS(T, LEAST, MOST)                      \
  template <>                                          \
  struct wf_bounds<T> {                                \
    static WF_DEVICE T least() { return LEAST; }       \
    static WF_DEVICE T most() { return MOST; }         \
  };
WF_BOUNDS(signed char, -128, 127)
WF_BOUNDS(unsigned char, 0, 255)
WF_BOUNDS(short, -32768, 32767)
WF_BOUNDS(unsigned short, 0, 65535)
WF_BOUNDS(int, -2147483647 - 1, 2147483647)
WF_BOUNDS(unsigned int, 0u, 4294967295u)
WF_BOUNDS(long long, -9223372036854775807ll - 1, 9223372036854775807ll)
WF_BOUNDS(unsigned long long, 0ull, 18446744073709551615ull)
template <class T, class F>
WF_DEVICE T wf_cut(F value) {
  if (value != value) return (T)0;
  if (value <= (F)wf_bounds<T>::least()) return wf_bounds<T>::least();
  if (value >= (F)wf_bounds<T>::most()) return wf_bounds<T>::most();
  return (T)value;
}
template <class T, class F>
struct wf_converter {
  static WF_DEVICE T convert(F value) { return (T)value; }
};
#define WF_CUTS(T)                                                          \
  template <>                                                               \
  struct wf_converter<T, float> {                                           \
    static WF_DEVICE T convert(float value) { return wf_cut<T>(value); }    \
  };                                                                        \
  template <>                                                               \
  struct wf_converter<T, double> {                                          \
    static WF_DEVICE T convert(double value) { return wf_cut<T>(value); }   \
  };
WF_CUTS(signed char)
WF_CUTS(unsigned char)
WF_CUTS(short)
WF_CUTS(unsigned short)
WF_CUTS(int)
WF_CUTS(unsigned int)
WF_CUTS(long long)
WF_CUTS(unsigned long long)
template <class T, class F>
WF_DEVICE T wf_convert(F value) { return wf_converter<T, F>::convert(value); }
// An index clamped to 0..=most.
template <class T>
WF_DEVICE long long wf_clamp(T value, long long most) {
  const long long wide = (long long)value;
  return value > (T)0 ? (wide < 0 || wide > most ? most : wide) : 0;
}
// A float rounded to the ten mantissa bits of tf32.
WF_DEVICE float wf_tf32(float value) {
  return value - value != 0 ? value : wf_float((wf_bits(value) + 0x1000u) & 0xffffe000u);
}
