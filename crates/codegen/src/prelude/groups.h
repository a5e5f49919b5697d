
// Reductions over groups of threads: shuffles within a warp, shared memory across warps.
#define WF_REDUCER(name)                                                   \
  struct wf_reduce_##name {                                               \
    template <class T>                                                  \
    WF_DEVICE T operator()(T a, T b) const { return wf_##name(a, b); }  \
  };
WF_REDUCER(add)
WF_REDUCER(mul)
WF_REDUCER(max)
WF_REDUCER(min)
WF_REDUCER(and)
WF_REDUCER(or)

template <int BYTES>
struct wf_shuffler {
  template <class T>
  static WF_DEVICE T shuffle(T value, int mask) {
    return (T)wf_shuffle_bits((unsigned)value, mask);
  }
};
template <>
struct wf_shuffler<8> {
  template <class T>
  static WF_DEVICE T shuffle(T value, int mask) {
    const unsigned long long bits = (unsigned long long)value;
    const unsigned low = wf_shuffle_bits((unsigned)bits, mask);
    const unsigned high = wf_shuffle_bits((unsigned)(bits >> 32), mask);
    return (T)(((unsigned long long)high << 32) | low);
  }
};
template <class T>
WF_DEVICE T wf_shuffle(T value, int mask) { return wf_shuffler<sizeof(T)>::shuffle(value, mask); }
WF_DEVICE float wf_shuffle(float value, int mask) { return wf_float(wf_shuffle_bits(wf_bits(value), mask)); }
WF_DEVICE double wf_shuffle(double value, int mask) { return wf_double(wf_shuffle(wf_bits(value), mask)); }

// Reduces over each group of GROUP adjacent threads; every thread gets the result. Called by all threads of the
// block. `room` has one element per warp.
template <int GROUP, class F, class T>
WF_DEVICE T wf_group_reduce(T value, F reduce, T* room) {
#pragma unroll
  for (int mask = (GROUP < 32 ? GROUP : 32) / 2; mask > 0; mask /= 2) value = reduce(value, wf_shuffle(value, mask));
  if (GROUP > 32) {
    constexpr int warps = GROUP > 32 ? GROUP / 32 : 1;
    const int warp = WF_THREAD / 32;
    wf_sync();
    if (WF_THREAD % 32 == 0) room[warp] = value;
    wf_sync();
    const int first = warp / warps * warps;
    value = room[first];
#pragma unroll
    for (int at = 1; at < warps; ++at) value = reduce(value, room[first + at]);
  }
  return value;
}

// Reduces over HEIGHT threads at distance WIDTH; every thread gets the result. `room` has one element per thread.
template <int WIDTH, int HEIGHT, class F, class T>
WF_DEVICE T wf_column_reduce(T value, F reduce, T* room) {
  if (HEIGHT > 1) {
    wf_sync();
    room[WF_THREAD] = value;
    wf_sync();
    value = room[WF_THREAD % WIDTH];
#pragma unroll
    for (int at = 1; at < HEIGHT; ++at) value = reduce(value, room[at * WIDTH + WF_THREAD % WIDTH]);
  }
  return value;
}
