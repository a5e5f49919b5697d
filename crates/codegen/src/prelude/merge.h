
// The position of an element after its sorted run is merged with the neighbouring one. Stable; `precedes(a, b)` is
// the order.
template <class F>
WF_DEVICE int wf_merged(const int* order, int at, int run, int count, F precedes) {
  const int own = order[at], begin = at / (2 * run) * (2 * run);
  const int middle = count - begin < run ? count : begin + run, end = count - middle < run ? count : middle + run;
  const bool first = at < middle;
  int low = first ? middle : begin, high = first ? end : middle;
  while (low < high) {
    const int half = low + (high - low) / 2, other = order[half];
    if (first ? precedes(other, own) : !precedes(own, other)) {
      low = half + 1;
    } else {
      high = half;
    }
  }
  return low + at - middle;
}
