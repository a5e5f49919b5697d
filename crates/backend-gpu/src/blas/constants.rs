//! Constants of cuBLASLt and hipBLASLt.

/// The constants of a vendor's interface: a name and a type, then the value of cuBLASLt and that of hipBLASLt.
macro_rules! constants {
    ($($(#[$doc:meta])* $name:ident: $ty:ty = $cublaslt:expr, $hipblaslt:expr;)*) => {
        /// Constants of a vendor's BLAS interface.
        #[derive(Debug, Clone, Copy)]
        pub(crate) struct ApiConstants {
            $($(#[$doc])* pub(crate) $name: $ty,)*
        }

        /// cuBLASLt constants.
        pub(crate) const CUBLASLT: ApiConstants = ApiConstants { $($name: $cublaslt,)* };

        /// hipBLASLt constants.
        pub(crate) const HIPBLASLT: ApiConstants = ApiConstants { $($name: $hipblaslt,)* };
    };
}

constants! {
    /// Compute types.
    compute_f32: i32 = 68, 2;
    compute_tf32: i32 = 77, 6;
    compute_f64: i32 = 70, 7;
    compute_i32: i32 = 72, 9;
    /// Transpose operations.
    plain: i32 = 0, 111;
    transposed: i32 = 1, 112;
    /// Attributes of a matmul descriptor.
    transpose_a: i32 = 3, 0;
    transpose_b: i32 = 4, 1;
    epilogue: i32 = 7, 2;
    bias_address: i32 = 8, 3;
    bias_type: i32 = 26, 4;
    aux_address: i32 = 11, 10;
    aux_stride: i32 = 12, 11;
    /// The same of floats of 8 bits, where they exist: scales of A and of B, whether they are vectors, fast accumulation.
    scale_a: i32 = 17, 5;
    scale_b: i32 = 18, 6;
    scale_modes: Option<[i32; 2]> = Some([31, 32]), None;
    fast_accumulation: Option<i32> = Some(25), None;
    /// Attributes of a layout.
    batch_count: i32 = 5, 0;
    batch_stride: i32 = 6, 1;
    /// Attributes of a preference; the alignments of A to D are consecutive, where they exist.
    most_workspace: i32 = 1, 1;
    alignments: Option<i32> = Some(5), None;
    /// Bytes of an algorithm and of a heuristic result.
    algorithm_bytes: usize = 64, 24;
    answer_bytes: usize = 96, 56;
}
