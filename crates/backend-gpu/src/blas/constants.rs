//! Constants of cuBLASLt and hipBLASLt.

/// Constants of a vendor's BLAS interface.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ApiConstants {
    /// Compute types.
    pub(crate) compute_f32: i32,
    pub(crate) compute_tf32: i32,
    pub(crate) compute_f64: i32,
    pub(crate) compute_i32: i32,
    /// Transpose operations.
    pub(crate) plain: i32,
    pub(crate) transposed: i32,
    /// Attributes of a matmul descriptor.
    pub(crate) transpose_a: i32,
    pub(crate) transpose_b: i32,
    pub(crate) epilogue: i32,
    pub(crate) bias_address: i32,
    pub(crate) bias_type: i32,
    pub(crate) aux_address: i32,
    pub(crate) aux_stride: i32,
    /// Attributes of a layout.
    pub(crate) batch_count: i32,
    pub(crate) batch_stride: i32,
    /// Attributes of a preference; the alignments of A to D are consecutive, where they exist.
    pub(crate) most_workspace: i32,
    pub(crate) alignments: Option<i32>,
    /// Bytes of an algorithm and of a heuristic result.
    pub(crate) algorithm_bytes: usize,
    pub(crate) answer_bytes: usize,
}

/// cuBLASLt constants.
pub(crate) const CUBLASLT: ApiConstants = ApiConstants {
    compute_f32: 68,
    compute_tf32: 77,
    compute_f64: 70,
    compute_i32: 72,
    plain: 0,
    transposed: 1,
    transpose_a: 3,
    transpose_b: 4,
    epilogue: 7,
    bias_address: 8,
    bias_type: 26,
    aux_address: 11,
    aux_stride: 12,
    batch_count: 5,
    batch_stride: 6,
    most_workspace: 1,
    alignments: Some(5),
    algorithm_bytes: 64,
    answer_bytes: 96,
};

/// hipBLASLt constants.
pub(crate) const HIPBLASLT: ApiConstants = ApiConstants {
    compute_f32: 2,
    compute_tf32: 6,
    compute_f64: 7,
    compute_i32: 9,
    plain: 111,
    transposed: 112,
    transpose_a: 0,
    transpose_b: 1,
    epilogue: 2,
    bias_address: 3,
    bias_type: 4,
    aux_address: 10,
    aux_stride: 11,
    batch_count: 0,
    batch_stride: 1,
    most_workspace: 1,
    alignments: None,
    algorithm_bytes: 24,
    answer_bytes: 56,
};
