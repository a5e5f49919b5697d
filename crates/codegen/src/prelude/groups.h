
// Folds over groups of threads: neighbours by shuffles, warps through shared memory.
#define WF_FOLD(name)                                                   \
  struct wf_fold_##name {                                               \
    template <class T>                                                  \
    WF_DEVICE T operator()(T a, T b) const { return wf_##name(a, b); }  \
  };
WF_FOLD(add)
WF_FOLD(mul)
WF_FOLD(max)
WF_FOLD(min)
WF_FOLD(and)
WF_FOLD(or)

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

// The fold over each group of GROUP threads side by side; every thread of the group gets it. All threads of the block take
// part. `room` has a place for each warp of the block.
template <int GROUP, class F, class T>
WF_DEVICE T wf_group_fold(T value, F fold, T* room) {
#pragma unroll
  for (int mask = (GROUP < 32 ? GROUP : 32) / 2; mask > 0; mask /= 2) value = fold(value, wf_shuffle(value, mask));
  if (GROUP > 32) {
    constexpr int warps = GROUP > 32 ? GROUP / 32 : 1;
    const int warp = WF_THREAD / 32;
    wf_sync();
    if (WF_THREAD % 32 == 0) room[warp] = value;
    wf_sync();
    const int first = warp / warps * warps;
    value = room[first];
#pragma unroll
    for (int at = 1; at < warps; ++at) value = fold(value, room[first + at]);
  }
  return value;
}

// The fold over threads that are WIDTH apart, HEIGHT of them; every thread gets it. `room` has a place for each thread.
template <int WIDTH, int HEIGHT, class F, class T>
WF_DEVICE T wf_column_fold(T value, F fold, T* room) {
  if (HEIGHT > 1) {
    wf_sync();
    room[WF_THREAD] = value;
    wf_sync();
    value = room[WF_THREAD % WIDTH];
#pragma unroll
    for (int at = 1; at < HEIGHT; ++at) value = fold(value, room[at * WIDTH + WF_THREAD % WIDTH]);
  }
  return value;
}
