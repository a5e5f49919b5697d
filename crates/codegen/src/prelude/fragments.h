
// Operands of tensor-core products: fragments of 16 by 16 elements, spread over a warp. Elements of 4 bytes are rounded to tf32 and
// multiplied in two halves of eight; a lane holds the neighbours 2t and 2t + 1 of each half where the instruction has t and t + 4, which is
// the same sum as long as both operands do so.
template <class T>
struct wf_fragment {
  unsigned part[4];
};
template <>
struct wf_fragment<float> {
  unsigned part[8];
};
// The left operand, from a tile with its rows.
template <class T>
WF_DEVICE void wf_load_left(wf_fragment<T>& to, const T* corner, int line) {
  const int lane = WF_THREAD % 32;
  wf_load_matrices<false>(to.part, corner + lane % 16 * line + lane / 16 * 8);
}
WF_DEVICE void wf_load_left(wf_fragment<float>& to, const float* corner, int line) {
  const int lane = WF_THREAD % 32;
  const float* const own = corner + lane / 4 * line + lane % 4 * 2;
#pragma unroll
  for (int at = 0; at < 4; ++at) {
    const wf_vec<float, 2> both = *(const wf_vec<float, 2>*)(own + at % 2 * 8 * line + at / 2 * 8);
    to.part[at / 2 * 4 + at % 2] = wf_tf32_bits(both.x[0]);
    to.part[at / 2 * 4 + at % 2 + 2] = wf_tf32_bits(both.x[1]);
  }
}
// The right operand, from a tile whose rows are its columns, or its rows where it is transposed.
template <bool TRANSPOSED, class T>
WF_DEVICE void wf_load_right(wf_fragment<T>& to, const T* corner, int line) {
  const int lane = WF_THREAD % 32;
  const int row = TRANSPOSED ? lane % 16 : lane / 16 * 8 + lane % 8, column = (TRANSPOSED ? lane / 16 : lane / 8 % 2) * 8;
  wf_load_matrices<TRANSPOSED>(to.part, corner + row * line + column);
}
template <bool TRANSPOSED>
WF_DEVICE void wf_load_right(wf_fragment<float>& to, const float* corner, int line) {
  const int lane = WF_THREAD % 32;
#pragma unroll
  for (int at = 0; at < 4; ++at) {
    const int column = at / 2 * 8 + lane / 4, depth = at % 2 * 8 + lane % 4 * 2;
    if (TRANSPOSED) {
      to.part[at * 2] = wf_tf32_bits(corner[depth * line + column]);
      to.part[at * 2 + 1] = wf_tf32_bits(corner[(depth + 1) * line + column]);
    } else {
      const wf_vec<float, 2> both = *(const wf_vec<float, 2>*)(corner + column * line + depth);
      to.part[at * 2] = wf_tf32_bits(both.x[0]);
      to.part[at * 2 + 1] = wf_tf32_bits(both.x[1]);
    }
  }
}
// The left operand from sums of two tiles of eight columns.
template <class T>
WF_DEVICE void wf_left_of(wf_fragment<T>& to, const float (&low)[4], const float (&high)[4]) {
#pragma unroll
  for (int at = 0; at < 2; ++at) {
    to.part[at] = wf_pair(low[at * 2], low[at * 2 + 1], (T*)0);
    to.part[at + 2] = wf_pair(high[at * 2], high[at * 2 + 1], (T*)0);
  }
}
WF_DEVICE void wf_left_of(wf_fragment<float>& to, const float (&low)[4], const float (&high)[4]) {
#pragma unroll
  for (int at = 0; at < 4; ++at) {
    to.part[at] = wf_tf32_bits(low[at % 2 * 2 + at / 2]);
    to.part[at + 4] = wf_tf32_bits(high[at % 2 * 2 + at / 2]);
  }
}
// Adds the products with the first and the last eight columns.
template <class T>
WF_DEVICE void wf_multiply(float (&low)[4], float (&high)[4], const wf_fragment<T>& left, const wf_fragment<T>& right) {
  wf_mma(low, left.part, right.part[0], right.part[1], (T*)0);
  wf_mma(high, left.part, right.part[2], right.part[3], (T*)0);
}
WF_DEVICE void wf_multiply(float (&low)[4], float (&high)[4], const wf_fragment<float>& left, const wf_fragment<float>& right) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const unsigned a[4] = {left.part[half * 4], left.part[half * 4 + 1], left.part[half * 4 + 2], left.part[half * 4 + 3]};
    wf_mma(low, a, right.part[half * 2], right.part[half * 2 + 1], (float*)0);
    wf_mma(high, a, right.part[half * 2 + 4], right.part[half * 2 + 5], (float*)0);
  }
}
