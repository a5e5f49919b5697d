
// Where an element goes when the ordered run that it is in and its neighbour are merged. Equal elements stay in their
// order; `precedes(a, b)` says whether a comes before b.
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
