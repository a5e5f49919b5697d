
// Compare-and-swap for elements of any size.
template <class T>
WF_DEVICE bool wf_same(T a, T b) {
  const unsigned char *x = (const unsigned char*)&a, *y = (const unsigned char*)&b;
  bool same = true;
#pragma unroll
  for (int at = 0; at < (int)sizeof(T); ++at) same = same && x[at] == y[at];
  return same;
}
template <class T, class W>
union wf_word {
  W word;
  T parts[sizeof(W) / sizeof(T)];
  WF_DEVICE wf_word() : word(0) {}
};
template <int BYTES>
struct wf_exchanger {
  template <class T>
  static WF_DEVICE T exchange_if(T* spot, T expected, T wanted) {
    // Narrow elements are swapped with the word that contains them.
    const unsigned long long address = (unsigned long long)spot;
    unsigned* const word = (unsigned*)(address & ~3ull);
    const int place = (int)((address & 3ull) / sizeof(T));
    wf_word<T, unsigned> seen, next;
    seen.word = *(volatile unsigned*)word;
    for (;;) {
      if (!wf_same(seen.parts[place], expected)) return seen.parts[place];
      next.word = seen.word;
      next.parts[place] = wanted;
      const unsigned before = wf_swap_if(word, seen.word, next.word);
      if (before == seen.word) return expected;
      seen.word = before;
    }
  }
};
template <>
struct wf_exchanger<8> {
  template <class T>
  static WF_DEVICE T exchange_if(T* spot, T expected, T wanted) {
    wf_word<T, unsigned long long> old, next;
    old.parts[0] = expected;
    next.parts[0] = wanted;
    old.word = wf_swap_if((unsigned long long*)spot, old.word, next.word);
    return old.parts[0];
  }
};
template <class T>
WF_DEVICE T wf_exchange_if(T* spot, T expected, T wanted) {
  return wf_exchanger<sizeof(T)>::exchange_if(spot, expected, wanted);
}
