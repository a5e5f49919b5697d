
// Tensor cores: mma with f32 accumulation, fragment loads, asynchronous copies.
WF_DEVICE unsigned wf_address(const void* pointer) { return (unsigned)__cvta_generic_to_shared(pointer); }
template <bool TRANSPOSED>
WF_DEVICE void wf_load_matrices(unsigned (&to)[4], const void* row) {
  if (TRANSPOSED) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(wf_address(row)));
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(wf_address(row)));
  }
}
WF_DEVICE void wf_mma(float (&sum)[4], const unsigned (&a)[4], unsigned b0, unsigned b1, wf_bf16*) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
WF_DEVICE void wf_mma(float (&sum)[4], const unsigned (&a)[4], unsigned b0, unsigned b1, wf_f16*) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
WF_DEVICE void wf_mma(float (&sum)[4], const unsigned (&a)[4], unsigned b0, unsigned b1, float*) {
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
WF_DEVICE unsigned wf_tf32_bits(float value) {
  unsigned bits;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(value));
  return bits;
}
WF_DEVICE unsigned wf_pair(float low, float high, wf_bf16*) {
  unsigned both;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  return both;
}
WF_DEVICE unsigned wf_pair(float low, float high, wf_f16*) {
  unsigned both;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  return both;
}
// Four of the eight bytes of two words.
WF_DEVICE unsigned wf_permuted(unsigned low, unsigned high, unsigned bytes) {
  unsigned word;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(word) : "r"(low), "r"(high), "r"(bytes));
  return word;
}
// Two f16 less two others.
WF_DEVICE unsigned wf_less_halves(unsigned a, unsigned b) {
  unsigned both;
  asm("sub.f16x2 %0, %1, %2;" : "=r"(both) : "r"(a), "r"(b));
  return both;
}
WF_DEVICE float wf_exp2(float value) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(value));
  return result;
}
// Copies sixteen bytes into shared memory; zeros out of bounds.
WF_DEVICE void wf_copy16(void* to, const void* from, bool exists) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(wf_address(to)), "l"(from), "r"(exists ? 16 : 0));
}
// The same for what is read once: main memory gives whole lines of the cache.
WF_DEVICE void wf_stream16(void* to, const void* from, bool exists) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(wf_address(to)), "l"(from), "r"(exists ? 16 : 0));
}
WF_DEVICE void wf_copy4(void* to, const void* from, bool exists) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(wf_address(to)), "l"(from), "r"(exists ? 4 : 0));
}
WF_DEVICE void wf_copies_end() { asm volatile("cp.async.commit_group;"); }
template <int LEFT>
WF_DEVICE void wf_copies_wait() { asm volatile("cp.async.wait_group %0;" ::"n"(LEFT)); }
