
// sm_90a: TMA copies counted by mbarriers, and wgmma of 64 by 256 from shared memory. Tile lines have 128 bytes with
// a 128-byte swizzle.
struct alignas(64) wf_tensor_map {
  unsigned long long words[16];
};
#define WF_TENSOR_MAP(name) const __grid_constant__ wf_tensor_map name
typedef unsigned long long wf_matrix;
WF_DEVICE unsigned char* wf_from_1024(unsigned char* room) { return room + (-wf_address(room) & 1023); }
WF_DEVICE void wf_barrier_begin(unsigned long long* barrier, int count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(wf_address(barrier)), "r"(count) : "memory");
}
WF_DEVICE void wf_barriers_begun() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
WF_DEVICE void wf_barrier_expect(unsigned long long* barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(wf_address(barrier)), "r"(bytes) : "memory");
}
WF_DEVICE void wf_barrier_arrive(unsigned long long* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(wf_address(barrier)) : "memory");
}
WF_DEVICE void wf_barrier_wait(unsigned long long* barrier, int phase) {
  asm volatile("{\n.reg .pred p;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@p bra done;\nbra again;\ndone:\n}"
               ::"r"(wf_address(barrier)), "r"(phase) : "memory");
}
WF_DEVICE void wf_tensor_map_copy(void* to, const wf_tensor_map& map, int x, int y, int z, unsigned long long* barrier) {
  asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];"
               ::"r"(wf_address(to)), "l"(&map), "r"(x), "r"(y), "r"(z), "r"(wf_address(barrier)) : "memory");
}
template <int COUNT>
WF_DEVICE void wf_fewer_registers() { asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(COUNT)); }
template <int COUNT>
WF_DEVICE void wf_more_registers() { asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(COUNT)); }
// `apart` is the distance between blocks of 64 in the other dimension for transposed operands; eight lines have 1024
// bytes.
WF_DEVICE wf_matrix wf_matrix_at(const unsigned char* at, int apart) {
  return (wf_matrix)((wf_address(at) & 0x3ffff) >> 4) | (wf_matrix)(apart >> 4) << 16 | 64ull << 32 | 1ull << 62;
}
WF_DEVICE void wf_wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
WF_DEVICE void wf_wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int LEFT>
WF_DEVICE void wf_wgmma_wait() { asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LEFT) : "memory"); }
#define WF_PRODUCT(type, name) \
  template <int TURNED_A, int TURNED_B> \
  WF_DEVICE void wf_wgmma(float (&s)[128], wf_matrix a, wf_matrix b, type*) { \
    asm volatile("wgmma.mma_async.sync.aligned.m64n256k16.f32." name "." name " {" \
                 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
                 "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, " \
                 "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, " \
                 "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, %128, %129, 1, 1, 1, %130, %131;" \
                 : "+f"(s[0]), "+f"(s[1]), "+f"(s[2]), "+f"(s[3]), "+f"(s[4]), "+f"(s[5]), "+f"(s[6]), "+f"(s[7]), \
                   "+f"(s[8]), "+f"(s[9]), "+f"(s[10]), "+f"(s[11]), "+f"(s[12]), "+f"(s[13]), "+f"(s[14]), "+f"(s[15]), \
                   "+f"(s[16]), "+f"(s[17]), "+f"(s[18]), "+f"(s[19]), "+f"(s[20]), "+f"(s[21]), "+f"(s[22]), "+f"(s[23]), \
                   "+f"(s[24]), "+f"(s[25]), "+f"(s[26]), "+f"(s[27]), "+f"(s[28]), "+f"(s[29]), "+f"(s[30]), "+f"(s[31]), \
                   "+f"(s[32]), "+f"(s[33]), "+f"(s[34]), "+f"(s[35]), "+f"(s[36]), "+f"(s[37]), "+f"(s[38]), "+f"(s[39]), \
                   "+f"(s[40]), "+f"(s[41]), "+f"(s[42]), "+f"(s[43]), "+f"(s[44]), "+f"(s[45]), "+f"(s[46]), "+f"(s[47]), \
                   "+f"(s[48]), "+f"(s[49]), "+f"(s[50]), "+f"(s[51]), "+f"(s[52]), "+f"(s[53]), "+f"(s[54]), "+f"(s[55]), \
                   "+f"(s[56]), "+f"(s[57]), "+f"(s[58]), "+f"(s[59]), "+f"(s[60]), "+f"(s[61]), "+f"(s[62]), "+f"(s[63]), \
                   "+f"(s[64]), "+f"(s[65]), "+f"(s[66]), "+f"(s[67]), "+f"(s[68]), "+f"(s[69]), "+f"(s[70]), "+f"(s[71]), \
                   "+f"(s[72]), "+f"(s[73]), "+f"(s[74]), "+f"(s[75]), "+f"(s[76]), "+f"(s[77]), "+f"(s[78]), "+f"(s[79]), \
                   "+f"(s[80]), "+f"(s[81]), "+f"(s[82]), "+f"(s[83]), "+f"(s[84]), "+f"(s[85]), "+f"(s[86]), "+f"(s[87]), \
                   "+f"(s[88]), "+f"(s[89]), "+f"(s[90]), "+f"(s[91]), "+f"(s[92]), "+f"(s[93]), "+f"(s[94]), "+f"(s[95]), \
                   "+f"(s[96]), "+f"(s[97]), "+f"(s[98]), "+f"(s[99]), "+f"(s[100]), "+f"(s[101]), "+f"(s[102]), "+f"(s[103]), \
                   "+f"(s[104]), "+f"(s[105]), "+f"(s[106]), "+f"(s[107]), "+f"(s[108]), "+f"(s[109]), "+f"(s[110]), "+f"(s[111]), \
                   "+f"(s[112]), "+f"(s[113]), "+f"(s[114]), "+f"(s[115]), "+f"(s[116]), "+f"(s[117]), "+f"(s[118]), "+f"(s[119]), \
                   "+f"(s[120]), "+f"(s[121]), "+f"(s[122]), "+f"(s[123]), "+f"(s[124]), "+f"(s[125]), "+f"(s[126]), "+f"(s[127]) \
                 : "l"(a), "l"(b), "n"(TURNED_A), "n"(TURNED_B)); \
  }
WF_PRODUCT(wf_bf16, "bf16")
WF_PRODUCT(wf_f16, "f16")
