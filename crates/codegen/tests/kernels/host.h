// The part of the prelude with which kernels run on the host: every thread of a block is a fiber.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#define WF_KERNEL(threads, resident)
#define WF_DEVICE inline
#define WF_SHARED static
#define WF_DYNAMIC_SHARED(name) unsigned char* name = wf_dynamic
#define WF_RESTRICT
#define WF_THREAD wf_current
#define WF_THREADS wf_count
#define WF_BLOCK wf_block

static const int wf_most = 1024;
static const size_t wf_stack = 1 << 17;
static ucontext_t wf_home, wf_fibers[wf_most];
static unsigned char *wf_stacks, *wf_dynamic;
static bool wf_done[wf_most];
static int wf_current, wf_count, wf_block, wf_alive;
static int wf_arrived, wf_turn, wf_warp_arrived[wf_most / 32], wf_warp_turn[wf_most / 32];
static void (*wf_body)();

static void wf_next() {
  const int from = wf_current;
  int to = from;
  do to = (to + 1) % wf_count;
  while (wf_done[to] && to != from);
  if (to == from) {
    if (!wf_done[from]) { fprintf(stderr, "a barrier that not all threads reach\n"); exit(9); }
    return;
  }
  wf_current = to;
  swapcontext(&wf_fibers[from], &wf_fibers[to]);
}
static void wf_start() {
  wf_body();
  wf_done[wf_current] = true;
  --wf_alive;
  if (wf_alive == 0) setcontext(&wf_home);
  wf_next();
}
inline void wf_sync() {
  const int turn = wf_turn;
  if (++wf_arrived == wf_count) { wf_arrived = 0; ++wf_turn; return; }
  while (wf_turn == turn) wf_next();
}
inline void wf_sync_warp() {
  const int warp = wf_current / 32, turn = wf_warp_turn[warp];
  if (++wf_warp_arrived[warp] == 32) { wf_warp_arrived[warp] = 0; ++wf_warp_turn[warp]; return; }
  while (wf_warp_turn[warp] == turn) wf_next();
}
static void wf_launch(int blocks, int threads, size_t shared, void (*body)()) {
  if (threads % 32 != 0 || threads > wf_most) { fprintf(stderr, "%d threads\n", threads); exit(9); }
  if (!wf_stacks) wf_stacks = (unsigned char*)malloc(wf_stack * wf_most);
  wf_dynamic = (unsigned char*)aligned_alloc(1024, (shared + 1024) / 1024 * 1024 + 1024);
  wf_body = body;
  for (wf_block = 0; wf_block < blocks; ++wf_block) {
    wf_count = wf_alive = threads;
    wf_arrived = 0;
    for (int at = 0; at < threads; ++at) {
      wf_done[at] = false;
      getcontext(&wf_fibers[at]);
      wf_fibers[at].uc_stack.ss_sp = wf_stacks + wf_stack * at;
      wf_fibers[at].uc_stack.ss_size = wf_stack;
      wf_fibers[at].uc_link = 0;
      makecontext(&wf_fibers[at], wf_start, 0);
    }
    wf_current = 0;
    swapcontext(&wf_home, &wf_fibers[0]);
  }
  free(wf_dynamic);
}
struct wf_any {
  void* address;
  template <class T>
  operator T*() const { return (T*)address; }
};

static unsigned wf_exchange[wf_most];
inline unsigned wf_shuffle_bits(unsigned value, int mask) {
  wf_exchange[wf_current] = value;
  wf_sync_warp();
  const unsigned other = wf_exchange[wf_current ^ mask];
  wf_sync_warp();
  return other;
}
template <class T>
inline T wf_swap_if(T* spot, T expected, T wanted) {
  const T old = *spot;
  if (old == expected) *spot = wanted;
  return old;
}
template <class T>
inline void wf_add_at(T* spot, T value) { *spot += value; }
template <class T>
inline T wf_product(T a, T b) { return a * b; }
inline float wf_float(unsigned bits) { float value; memcpy(&value, &bits, 4); return value; }
inline unsigned wf_bits(float value) { unsigned bits; memcpy(&bits, &value, 4); return bits; }
inline double wf_double(unsigned long long bits) { double value; memcpy(&value, &bits, 8); return value; }
inline unsigned long long wf_bits(double value) { unsigned long long bits; memcpy(&bits, &value, 8); return bits; }
inline float wf_half_to_float(unsigned short bits) { _Float16 value; memcpy(&value, &bits, 2); return (float)value; }
inline unsigned short wf_float_to_half(float value) {
  const _Float16 half = (_Float16)value;
  unsigned short bits;
  memcpy(&bits, &half, 2);
  return bits;
}
inline unsigned short wf_float_to_bfloat(float value) {
  const unsigned bits = wf_bits(value);
  if (value != value) return (unsigned short)((bits >> 16) | 0x40);
  return (unsigned short)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}
inline float wf_fma(float a, float b, float c) { return fmaf(a, b, c); }
inline float wf_reciprocal(float value) { return 1.0f / value; }
inline unsigned long long wf_clock() { static unsigned long long now; return ++now; }
inline unsigned wf_processor() { return 7; }
inline int wf_popcount(unsigned long long value) { return __builtin_popcountll(value); }
inline int wf_leading_zeros(unsigned long long value) { return value ? __builtin_clzll(value) : 64; }

inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
inline double rsqrt(double x) { return 1.0 / sqrt(x); }
#define WF_MATH(name, library)                             \
  inline float wf_##name(float x) { return library##f(x); } \
  inline double wf_##name(double x) { return library(x); }
#define WF_MATH2(name, library)                                        \
  inline float wf_##name(float a, float b) { return library##f(a, b); } \
  inline double wf_##name(double a, double b) { return library(a, b); }

// Tensor cores, lane by lane; what a lane needs of others lies in these.
struct wf_bf16;
struct wf_f16;
static const void* wf_rows_of[wf_most];
static unsigned wf_left[wf_most][4], wf_right[wf_most][2];
template <bool TRANSPOSED>
inline void wf_load_matrices(unsigned (&to)[4], const void* row) {
  if ((size_t)row % 16) { fprintf(stderr, "a matrix's row that is not aligned\n"); exit(9); }
  wf_rows_of[wf_current] = row;
  wf_sync_warp();
  const int warp = wf_current / 32 * 32, lane = wf_current % 32;
  for (int matrix = 0; matrix < 4; ++matrix) {
    unsigned short parts[2];
    for (int half = 0; half < 2; ++half) {
      const int at = TRANSPOSED ? lane % 4 * 2 + half : lane / 4, column = TRANSPOSED ? lane / 4 : lane % 4 * 2 + half;
      parts[half] = ((const unsigned short*)wf_rows_of[warp + matrix * 8 + at])[column];
    }
    to[matrix] = parts[0] | (unsigned)parts[1] << 16;
  }
  wf_sync_warp();
}
// What a register of a fragment holds.
template <class T>
struct wf_register;
template <>
struct wf_register<wf_bf16> {
  static const int elements = 2;
  static float get(unsigned word, int at) { return wf_float(word >> 16 * at << 16); }
};
template <>
struct wf_register<wf_f16> {
  static const int elements = 2;
  static float get(unsigned word, int at) { return wf_half_to_float((unsigned short)(word >> 16 * at)); }
};
template <>
struct wf_register<float> {
  static const int elements = 1;
  static float get(unsigned word, int) { return wf_float(word); }
};
template <class T>
inline void wf_mma(float (&sum)[4], const unsigned (&a)[4], unsigned b0, unsigned b1, T*) {
  for (int at = 0; at < 4; ++at) wf_left[wf_current][at] = a[at];
  wf_right[wf_current][0] = b0;
  wf_right[wf_current][1] = b1;
  wf_sync_warp();
  const int warp = wf_current / 32 * 32, lane = wf_current % 32;
  const int elements = wf_register<T>::elements, half = 4 * elements;
  for (int at = 0; at < 4; ++at) {
    const int row = lane / 4 + at / 2 * 8, column = lane % 4 * 2 + at % 2;
    for (int k = 0; k < 2 * half; ++k) {
      const unsigned x = wf_left[warp + row % 8 * 4 + k % half / elements][row / 8 + k / half * 2];
      const unsigned y = wf_right[warp + column * 4 + k % half / elements][k / half];
      sum[at] += wf_register<T>::get(x, k % elements) * wf_register<T>::get(y, k % elements);
    }
  }
  wf_sync_warp();
}
inline unsigned wf_tf32_bits(float value) { return wf_bits(value) + 0x1000u & ~0x1fffu; }
inline unsigned wf_pair(float low, float high, wf_bf16*) {
  return wf_float_to_bfloat(low) | (unsigned)wf_float_to_bfloat(high) << 16;
}
inline unsigned wf_pair(float low, float high, wf_f16*) {
  return wf_float_to_half(low) | (unsigned)wf_float_to_half(high) << 16;
}
inline unsigned wf_permuted(unsigned low, unsigned high, unsigned bytes) {
  const unsigned long long both = low | (unsigned long long)high << 32;
  unsigned word = 0;
  for (int at = 0; at < 4; ++at) word |= (unsigned)(both >> 8 * (bytes >> 4 * at & 7u) & 0xffu) << 8 * at;
  return word;
}
inline unsigned wf_less_halves(unsigned a, unsigned b) {
  const auto less = [](unsigned a, unsigned b) {
    return (unsigned)wf_float_to_half(wf_half_to_float((unsigned short)a) - wf_half_to_float((unsigned short)b));
  };
  return less(a & 0xffffu, b & 0xffffu) | less(a >> 16, b >> 16) << 16;
}
inline float wf_exp2(float value) { return exp2f(value); }
inline void wf_copy16(void* to, const void* from, bool exists) {
  if ((size_t)to % 16 || (exists && (size_t)from % 16)) { fprintf(stderr, "a copy that is not aligned\n"); exit(9); }
  if (exists) memcpy(to, from, 16); else memset(to, 0, 16);
}
inline void wf_stream16(void* to, const void* from, bool exists) { wf_copy16(to, from, exists); }
inline void wf_copy4(void* to, const void* from, bool exists) {
  if (exists) memcpy(to, from, 4); else memset(to, 0, 4);
}
inline void wf_copies_end() {}
template <int LEFT>
inline void wf_copies_wait() {}

// The copy engine, barriers that count, and products of four warps.
struct wf_tensor_map {
  const unsigned char* base;
  long long dims[3], strides[2];
  int box[2];
};
#define WF_TENSOR_MAP(name) const wf_tensor_map name
struct wf_matrix {
  const unsigned char* at;
  int apart;
};
struct wf_counted {
  short count, left;
  int bytes : 31;
  unsigned phase : 1;
};
inline void wf_counts(wf_counted* barrier) {
  if (barrier->left != 0 || barrier->bytes != 0) return;
  barrier->phase ^= 1;
  barrier->left = barrier->count;
}
inline unsigned char* wf_from_1024(unsigned char* room) { return room + (-(size_t)room & 1023); }
inline void wf_barrier_begin(unsigned long long* barrier, int count) { *(wf_counted*)barrier = {(short)count, (short)count, 0, 0}; }
inline void wf_barriers_begun() {}
inline void wf_barrier_expect(unsigned long long* barrier, int bytes) {
  ((wf_counted*)barrier)->bytes += bytes;
  --((wf_counted*)barrier)->left;
}
inline void wf_barrier_arrive(unsigned long long* barrier) {
  --((wf_counted*)barrier)->left;
  wf_counts((wf_counted*)barrier);
}
inline void wf_barrier_wait(unsigned long long* barrier, int phase) {
  while ((int)((wf_counted*)barrier)->phase == phase) wf_next();
}
// The parts of a line of 128 bytes are exchanged by the number of the line.
inline size_t wf_exchanged(size_t at) { return at ^ (at >> 7 & 7) << 4; }
inline void wf_tensor_map_copy(void* to, const wf_tensor_map& map, int x, int y, int z, unsigned long long* barrier) {
  if ((size_t)to % 1024 || (size_t)map.base % 16) { fprintf(stderr, "a tile that is not aligned\n"); exit(9); }
  for (int line = 0; line < map.box[1]; ++line) {
    for (int at = 0; at < map.box[0]; ++at) {
      const bool exists = x + at < map.dims[0] && y + line < map.dims[1] && z < map.dims[2];
      const unsigned char* from = map.base + (exists ? (x + at) * 2ll + (y + line) * map.strides[0] + z * map.strides[1] : 0);
      unsigned short* spot = (unsigned short*)wf_exchanged((size_t)to + line * 128 + at * 2);
      *spot = exists ? *(const unsigned short*)from : 0;
    }
  }
  ((wf_counted*)barrier)->bytes -= map.box[0] * map.box[1] * 2;
  wf_counts((wf_counted*)barrier);
}
template <int COUNT>
inline void wf_fewer_registers() {}
template <int COUNT>
inline void wf_more_registers() {}
inline wf_matrix wf_matrix_at(const unsigned char* at, int apart) { return {at, apart}; }
inline void wf_wgmma_fence() {}
inline void wf_wgmma_commit() {}
static int wf_four_arrived[wf_most / 128], wf_four_turn[wf_most / 128];
template <int LEFT>
inline void wf_wgmma_wait() {
  const int four = wf_current / 128, turn = wf_four_turn[four];
  if (++wf_four_arrived[four] == 128) { wf_four_arrived[four] = 0; ++wf_four_turn[four]; return; }
  while (wf_four_turn[four] == turn) wf_next();
}
template <int TURNED>
inline unsigned short wf_element(wf_matrix matrix, int row, int k) {
  const size_t at = TURNED ? row / 64 * matrix.apart + row % 64 * 2 + k * 128 : row * 128 + k * 2;
  return *(const unsigned short*)wf_exchanged((size_t)matrix.at + at);
}
template <int TURNED_A, int TURNED_B, class T>
inline void wf_wgmma(float (&sums)[128], wf_matrix a, wf_matrix b, T*) {
  const int row = wf_current / 32 % 4 * 16 + wf_current % 32 / 4, column = wf_current % 4 * 2;
  for (int at = 0; at < 128; ++at) {
    for (int k = 0; k < 16; ++k) {
      const unsigned x = wf_element<TURNED_A>(a, row + at / 2 % 2 * 8, k), y = wf_element<TURNED_B>(b, column + at / 4 * 8 + at % 2, k);
      sums[at] += wf_register<T>::get(x, 0) * wf_register<T>::get(y, 0);
    }
  }
}
