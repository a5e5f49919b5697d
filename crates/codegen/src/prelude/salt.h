
// Instrumentation.
struct wf_statistics {
  unsigned long long count = 0, nan = 0, infinite = 0, bytes = 0;
  double least = wf_double(0x7ff0000000000000ull), largest = wf_double(0xfff0000000000000ull), sum = 0;
  WF_DEVICE void add(double value, int size) {
    ++count;
    bytes += size;
    if (value != value) {
      ++nan;
    } else if (value - value != 0) {
      ++infinite;
    } else {
      least = value < least ? value : least;
      largest = value > largest ? value : largest;
      sum += value;
    }
  }
};
WF_DEVICE void wf_salt_timing(unsigned long long* salt, unsigned long long start) {
  wf_sync();
  if (WF_THREAD == 0) {
    salt[WF_BLOCK * 4ll] = start;
    salt[WF_BLOCK * 4ll + 1] = wf_clock();
    salt[WF_BLOCK * 4ll + 2] = wf_processor();
  }
}
// Warp statistics are combined through shared memory, without atomics.
WF_DEVICE void wf_salt_trace(unsigned long long* salt, unsigned long long start, wf_statistics seen) {
  WF_SHARED unsigned long long counts[32][4];
  WF_SHARED double numbers[32][3];
#pragma unroll
  for (int mask = 16; mask > 0; mask /= 2) {
    seen.count += wf_shuffle(seen.count, mask);
    seen.nan += wf_shuffle(seen.nan, mask);
    seen.infinite += wf_shuffle(seen.infinite, mask);
    seen.bytes += wf_shuffle(seen.bytes, mask);
    seen.sum += wf_shuffle(seen.sum, mask);
    seen.least = wf_min(seen.least, wf_shuffle(seen.least, mask));
    seen.largest = wf_max(seen.largest, wf_shuffle(seen.largest, mask));
  }
  const int warp = WF_THREAD / 32;
  wf_sync();
  if (WF_THREAD % 32 == 0) {
    counts[warp][0] = seen.count;
    counts[warp][1] = seen.nan;
    counts[warp][2] = seen.infinite;
    counts[warp][3] = seen.bytes;
    numbers[warp][0] = seen.least;
    numbers[warp][1] = seen.largest;
    numbers[warp][2] = seen.sum;
  }
  wf_sync();
  if (WF_THREAD == 0) {
    for (int at = 1; at < WF_THREADS / 32; ++at) {
      for (int of = 0; of < 4; ++of) counts[0][of] += counts[at][of];
      numbers[0][0] = wf_min(numbers[0][0], numbers[at][0]);
      numbers[0][1] = wf_max(numbers[0][1], numbers[at][1]);
      numbers[0][2] += numbers[at][2];
    }
    unsigned long long* record = salt + WF_BLOCK * 12ll;
    record[0] = start;
    record[1] = wf_clock();
    record[2] = wf_processor();
    for (int of = 0; of < 4; ++of) record[4 + of] = counts[0][of];
    for (int of = 0; of < 3; ++of) record[8 + of] = wf_bits(numbers[0][of]);
  }
}
