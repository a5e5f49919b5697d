//! Instruction sets, by the names the compilers use.

/// The sets that matter to arithmetic: the kernel's flag and the name shown, in the order shown.
const SETS: &[(&str, &str)] = &[
    // x86
    ("sse2", "sse2"),
    ("pni", "sse3"),
    ("ssse3", "ssse3"),
    ("sse4_1", "sse4.1"),
    ("sse4_2", "sse4.2"),
    ("sse4a", "sse4a"),
    ("popcnt", "popcnt"),
    ("aes", "aes"),
    ("pclmulqdq", "pclmulqdq"),
    ("sha_ni", "sha"),
    ("f16c", "f16c"),
    ("bmi1", "bmi1"),
    ("bmi2", "bmi2"),
    ("avx", "avx"),
    ("avx2", "avx2"),
    ("fma", "fma"),
    ("fma4", "fma4"),
    ("vaes", "vaes"),
    ("vpclmulqdq", "vpclmulqdq"),
    ("gfni", "gfni"),
    ("avx_vnni", "avxvnni"),
    ("avx_vnni_int8", "avxvnniint8"),
    ("avx_vnni_int16", "avxvnniint16"),
    ("avx_ifma", "avxifma"),
    ("avx_ne_convert", "avxneconvert"),
    ("avx512f", "avx512f"),
    ("avx512cd", "avx512cd"),
    ("avx512bw", "avx512bw"),
    ("avx512dq", "avx512dq"),
    ("avx512vl", "avx512vl"),
    ("avx512ifma", "avx512ifma"),
    ("avx512vbmi", "avx512vbmi"),
    ("avx512_vbmi2", "avx512vbmi2"),
    ("avx512_vnni", "avx512vnni"),
    ("avx512_bitalg", "avx512bitalg"),
    ("avx512_vpopcntdq", "avx512vpopcntdq"),
    ("avx512_vp2intersect", "avx512vp2intersect"),
    ("avx512_bf16", "avx512bf16"),
    ("avx512_fp16", "avx512fp16"),
    ("avx512_4vnniw", "avx5124vnniw"),
    ("avx512_4fmaps", "avx5124fmaps"),
    ("avx512er", "avx512er"),
    ("avx512pf", "avx512pf"),
    ("avx10", "avx10"),
    ("amx_tile", "amx-tile"),
    ("amx_int8", "amx-int8"),
    ("amx_bf16", "amx-bf16"),
    ("amx_fp16", "amx-fp16"),
    ("amx_complex", "amx-complex"),
    ("amx_tf32", "amx-tf32"),
    ("amx_fp8", "amx-fp8"),
    // ARM
    ("asimd", "neon"),
    ("asimdhp", "fp16"),
    ("asimddp", "dotprod"),
    ("asimdfhm", "fhm"),
    ("fcma", "fcma"),
    ("atomics", "lse"),
    ("sha2", "sha2"),
    ("i8mm", "i8mm"),
    ("bf16", "bf16"),
    ("sve", "sve"),
    ("sve2", "sve2"),
    ("svei8mm", "sve-i8mm"),
    ("svebf16", "sve-bf16"),
    ("svef32mm", "sve-f32mm"),
    ("svef64mm", "sve-f64mm"),
    ("sve2p1", "sve2p1"),
    ("sme", "sme"),
    ("sme2", "sme2"),
    ("smei8i32", "sme-i8i32"),
    ("smef16f32", "sme-f16f32"),
    ("smeb16f32", "sme-b16f32"),
];

/// The known instruction sets among the kernel's flags.
pub(super) fn instruction_sets(flags: &str) -> Vec<String> {
    let flags: std::collections::HashSet<_> = flags.split_whitespace().collect();
    SETS.iter().filter(|(flag, _)| flags.contains(flag)).map(|&(_, name)| name.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_compilers_and_whole_words() {
        assert_eq!(
            instruction_sets("fpu pni avx512_bf16 amx_tile avx512fx"),
            ["sse3", "avx512bf16", "amx-tile"]
        );
        assert_eq!(instruction_sets("fp asimd sve2 bf16"), ["neon", "bf16", "sve2"]);
        assert!(instruction_sets("").is_empty());
    }

    #[test]
    fn no_flag_or_name_is_listed_twice() {
        for (index, (flag, name)) in SETS.iter().enumerate() {
            assert!(SETS[..index].iter().all(|(f, n)| f != flag && n != name), "{flag} {name}");
        }
    }
}
