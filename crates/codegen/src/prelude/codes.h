
// Quantized weights as operands of tensor-core products: the elements of a register are made from words of codes.
// Codes `at` and `at + 4` of a word of eight. In bf16 they are numbers that lie above a power of two; what a product of them has too much is
// so many times the sum of the other operand. In f16, whose power is larger, the sums would lose too many bits.
WF_DEVICE unsigned wf_nibbles(unsigned word, int at, wf_bf16*) { return (word >> 4 * at & 0x000f000fu) | 0x43004300u; }
WF_DEVICE unsigned wf_nibbles(unsigned word, int at, wf_f16*) {
  return wf_less_halves((word >> 4 * at & 0x000f000fu) | 0x64006400u, 0x64086408u);
}
WF_DEVICE float wf_nibble_zero(wf_bf16*) { return 136.0f; }
WF_DEVICE float wf_nibble_zero(wf_f16*) { return 0.0f; }
WF_DEVICE unsigned wf_ones(wf_bf16*) { return 0x3f803f80u; }
WF_DEVICE unsigned wf_ones(wf_f16*) { return 0x3c003c00u; }
// Elements `at` and `at + 4` of eight.
WF_DEVICE unsigned wf_apart(const wf_vec<unsigned, 4>& eight, int at) {
  return wf_permuted(eight.x[at / 2], eight.x[at / 2 + 2], at % 2 ? 0x7632u : 0x5410u);
}
WF_DEVICE wf_vec<unsigned, 4> wf_all_apart(const wf_vec<unsigned, 4>& eight) {
  return {wf_apart(eight, 0), wf_apart(eight, 1), wf_apart(eight, 2), wf_apart(eight, 3)};
}
// Codes of a word of four, as what they lie above a power of two.
WF_DEVICE float wf_i8_code(unsigned word, int at) {
  return wf_float(wf_permuted(word ^ 0x80808080u, 0x4b000000u, 0x7440u + at)) - 8388736.0f;
}
WF_DEVICE float wf_f8_code(unsigned word, int at) {
  const unsigned code = word >> 8 * at;
  return wf_float((code & 0x80u) << 24 | (code & 0x7fu) << 20) * 1.329227995784916e36f;
}
// Codes `2 * at` and `2 * at + 1` of a word of four.
template <class T>
WF_DEVICE unsigned wf_i8_pair(unsigned word, int at, T*) {
  return wf_pair(wf_i8_code(word, 2 * at), wf_i8_code(word, 2 * at + 1), (T*)0);
}
template <class T>
WF_DEVICE unsigned wf_f8_pair(unsigned word, int at, T*) {
  return wf_pair(wf_f8_code(word, 2 * at), wf_f8_code(word, 2 * at + 1), (T*)0);
}
