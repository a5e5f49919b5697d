
// One axis of a region of features: where its bins are sampled.
template <class T>
struct wf_axis {
  T start, bin, samples;
  int size;
  // A product is rounded before the offset is taken from it: how many samples a bin has must not depend on contraction.
  WF_DEVICE wf_axis(T from, T to, double scale, bool aligned, int bins, int ratio, int elements) : size(elements) {
    const T offset = aligned ? (T)0.5 : (T)0;
    start = wf_product(from, (T)scale) - offset;
    T length = wf_product(to, (T)scale) - offset - start;
    if (!aligned && !(length >= 1)) length = 1;
    bin = length / (T)bins;
    samples = ratio > 0 ? (T)ratio : wf_ceil(bin);
    if (!(samples >= 0)) samples = 0;
  }
  // Where a bin begins.
  WF_DEVICE T begin(int at) const { return start + (T)at * bin; }
  // The samples of a bin that may be inside of the features: the number of the first, and how many. A region may be of any size.
  WF_DEVICE int range(T begins, T& first) const {
    const double step = (double)bin / (double)samples;
    double from = 0, count = (double)samples;
    if (step > 0) {
      from = wf_floor((-2 - (double)begins) / step);
      if (!(from > 0)) from = 0;
      const double most = wf_ceil(((double)size + 4) / step) + 2;
      count = count - from;
      if (most < count) count = most;
    }
    first = (T)from;
    return count > 0 && count < 2147483647.0 ? (int)count : 0;
  }
  // The two elements that a sample is between, and the part of the second; false if it is outside.
  WF_DEVICE bool sample(T begins, T number, int& low, int& high, T& part) const {
    T at = begins + (number + (T)0.5) * bin / samples;
    if (at < -1 || at > (T)size) return false;
    if (!(at > 0)) at = 0;
    low = (int)at;
    high = low + 1;
    part = at - (T)low;
    if (high >= size) {
      low = high = size - 1;
      part = 0;
    }
    return true;
  }
};

// A region of an image: the number of the image, left, top, right, bottom.
template <class T>
struct wf_region {
  wf_axis<T> rows, columns;
  int image;
  WF_DEVICE wf_region(const T* at, int images, double scale, bool aligned, int rows_of_bins, int columns_of_bins, int ratio, int height, int width)
      : rows(at[2], at[4], scale, aligned, rows_of_bins, ratio, height),
        columns(at[1], at[3], scale, aligned, columns_of_bins, ratio, width),
        image(at[0] > -1 && at[0] < (T)images ? (int)at[0] : -1) {}
  // How many samples a bin has, those outside of the features included.
  WF_DEVICE T samples() const {
    const T all = rows.samples * columns.samples;
    return all >= 1 ? all : 1;
  }
  // Each sample of a bin: its two rows and columns, and the parts of the second ones.
  template <class F>
  WF_DEVICE void each(int row, int column, F use) const {
    const T top = rows.begin(row), left = columns.begin(column);
    T first_row, first_column;
    const int down = rows.range(top, first_row), across = columns.range(left, first_column);
    for (int y = 0; y < down; ++y) {
      int above, below;
      T part_below;
      if (!rows.sample(top, first_row + (T)y, above, below, part_below)) continue;
      for (int x = 0; x < across; ++x) {
        int before, after;
        T part_after;
        if (!columns.sample(left, first_column + (T)x, before, after, part_after)) continue;
        use(above, below, part_below, before, after, part_after);
      }
    }
  }
};

// The larger and the smaller of two numbers; the other one of a NaN.
template <class T>
WF_DEVICE T wf_number_larger(T a, T b) { return a > b || b != b ? a : b; }
template <class T>
WF_DEVICE T wf_number_smaller(T a, T b) { return a < b || b != b ? a : b; }

// Whether two boxes (left, top, right, bottom) have more in common than a part of what they cover together.
template <class T>
WF_DEVICE bool wf_overlap(const T* a, const T* b, double threshold) {
  const T width = wf_number_larger(wf_number_smaller(a[2], b[2]) - wf_number_larger(a[0], b[0]), (T)0);
  const T height = wf_number_larger(wf_number_smaller(a[3], b[3]) - wf_number_larger(a[1], b[1]), (T)0);
  const T both = wf_product(width, height);
  const T all = wf_product(a[2] - a[0], a[3] - a[1]) + wf_product(b[2] - b[0], b[3] - b[1]) - both;
  return (double)(both / all) > threshold;
}
