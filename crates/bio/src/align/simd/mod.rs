//! Vectors of signed bytes, of 16-bit integers and of 64-bit words, for each instruction set, behind two traits.
//!
//! A kernel is written once against the traits and compiled for each instruction set inside a function with its target
//! features. The instruction set is chosen at run time.

// Intrinsics need their target features, which only the choice at run time can promise.
#![allow(unsafe_code)]

mod portable;
#[cfg(target_arch = "x86_64")]
mod x86;

use super::Scoring;
use super::band::Band;
use super::edit::myers_kernel;
use super::global::global_kernel;
use super::kernels::local_kernel;
use super::profile::profile_kernel;

/// An integer that is a lane of a vector.
pub(super) trait Element: Copy + Ord + Default + Into<i32> {
    /// The smallest value.
    const LOWEST: Self;
    /// The largest value.
    const HIGHEST: Self;
    /// The value as this type; saturated.
    fn saturated(value: i32) -> Self;
    /// The code of a letter, which is below 128.
    fn of_code(code: u8) -> Self;
}

impl Element for i8 {
    const LOWEST: Self = Self::MIN;
    const HIGHEST: Self = Self::MAX;
    fn saturated(value: i32) -> Self {
        value.clamp(i32::from(Self::MIN), i32::from(Self::MAX)) as Self
    }
    #[inline(always)]
    fn of_code(code: u8) -> Self {
        code.cast_signed()
    }
}

impl Element for i16 {
    const LOWEST: Self = Self::MIN;
    const HIGHEST: Self = Self::MAX;
    fn saturated(value: i32) -> Self {
        value.clamp(i32::from(Self::MIN), i32::from(Self::MAX)) as Self
    }
    #[inline(always)]
    fn of_code(code: u8) -> Self {
        code.into()
    }
}

/// A vector of small integers with saturating arithmetic.
pub(super) trait Lanes: Copy {
    /// The type of a lane.
    type Element: Element;
    /// The vector as an array.
    type Array: AsRef<[Self::Element]> + AsMut<[Self::Element]>;
    /// A table of 32 scores by code.
    type Table: Copy;
    /// Words of the same instruction set.
    type Words: Words;
    /// Lanes of a vector.
    const COUNT: usize;
    /// All lanes the same.
    fn splat(value: Self::Element) -> Self;
    /// Lanes from an array.
    fn from_array(values: Self::Array) -> Self;
    /// Lanes as an array.
    fn to_array(self) -> Self::Array;
    /// An array of zeros.
    fn zeros() -> Self::Array;
    /// Sum, saturated.
    fn add(self, other: Self) -> Self;
    /// Difference, saturated.
    fn sub(self, other: Self) -> Self;
    /// Sum, wrapped; cheaper than the saturated one.
    fn wrapping_add(self, other: Self) -> Self;
    /// Difference, wrapped.
    fn wrapping_sub(self, other: Self) -> Self;
    /// Difference of two numbers that are not negative; 0 where it would be negative.
    fn sub_to_zero(self, other: Self) -> Self;
    /// The larger of each lane.
    fn max(self, other: Self) -> Self;
    /// `yes` where two vectors are equal, `no` elsewhere.
    fn if_equal(a: Self, b: Self, yes: Self, no: Self) -> Self;
    /// A table from 32 scores.
    fn table(scores: &[i8; 32]) -> Self::Table;
    /// The score of each lane's code, which is below 32.
    fn lookup(table: Self::Table, codes: Self) -> Self;
}

/// A vector of 64-bit words.
pub(super) trait Words: Copy {
    /// The vector as an array.
    type Array: AsRef<[u64]> + AsMut<[u64]>;
    /// Words of a vector.
    const COUNT: usize;
    /// All words the same.
    fn splat(value: u64) -> Self;
    /// Words from an array.
    fn from_array(values: Self::Array) -> Self;
    /// Words as an array.
    fn to_array(self) -> Self::Array;
    /// An array of zeros.
    fn zeros() -> Self::Array;
    /// Bits in both.
    fn and(self, other: Self) -> Self;
    /// Bits in either.
    fn or(self, other: Self) -> Self;
    /// Bits in one only.
    fn xor(self, other: Self) -> Self;
    /// Bits not set.
    fn not(self) -> Self;
    /// Sum of each word, wrapped.
    fn add(self, other: Self) -> Self;
    /// One bit towards the most significant.
    fn shift_up(self) -> Self;
    /// The most significant bit as 0 or 1.
    fn top_bit(self) -> Self;
    /// `yes` where two vectors are equal, `no` elsewhere.
    fn if_equal(a: Self, b: Self, yes: Self, no: Self) -> Self;
}

/// What the vectors are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InstructionSet {
    /// 512 bits: AVX-512 with bytes and 16-bit integers (Skylake servers, Zen 4, and later).
    #[cfg(target_arch = "x86_64")]
    Avx512,
    /// 256 bits.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// Arrays that the compiler vectorises as it can.
    Portable,
}

impl InstructionSet {
    /// The best of this machine.
    pub(super) fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512vl")
            {
                return Self::Avx512;
            }
            if is_x86_feature_detected!("avx2") {
                return Self::Avx2;
            }
        }
        Self::Portable
    }

    /// Its name.
    pub(super) fn name(self) -> &'static str {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => "avx512",
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => "avx2",
            Self::Portable => "portable",
        }
    }

    /// Every instruction set of this machine, for tests.
    #[cfg(test)]
    pub(super) fn all() -> Vec<Self> {
        let mut all = vec![Self::Portable];
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") {
            all.push(Self::Avx2);
        }
        if Self::detect() != all[all.len() - 1] {
            all.push(Self::detect());
        }
        all
    }
}

/// Defines a function that runs a kernel with the vectors of an instruction set.
macro_rules! dispatched {
    ($(#[$doc:meta])* $name:ident, $kernel:ident, $portable:ty, $avx2:ty, $avx512:ty,
     ($($argument:ident: $type:ty),*) -> $result:ty) => {
        $(#[$doc])*
        pub(super) fn $name(set: InstructionSet, $($argument: $type),*) -> $result {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
                fn avx512($($argument: $type),*) -> $result {
                    $kernel::<$avx512>($($argument),*)
                }
                #[target_feature(enable = "avx2")]
                fn avx2($($argument: $type),*) -> $result {
                    $kernel::<$avx2>($($argument),*)
                }
                match set {
                    // SAFETY: `InstructionSet::detect` gives this one only where its features are.
                    InstructionSet::Avx512 => return unsafe { avx512($($argument),*) },
                    // SAFETY: as above.
                    InstructionSet::Avx2 => return unsafe { avx2($($argument),*) },
                    InstructionSet::Portable => {}
                }
            }
            let _ = set;
            $kernel::<$portable>($($argument),*)
        }
    };
}

#[cfg(target_arch = "x86_64")]
use x86::{Bytes2, Bytes5, Shorts2, Shorts5, Words2, Words5};

dispatched!(
    /// Local scores with lanes of bytes; `None` where a score may have saturated.
    local_bytes, local_kernel, portable::Bytes, Bytes2, Bytes5,
    (pairs: &[super::Pair<'_>], scoring: &Scoring, band: Band, scores: &mut [Option<i32>]) -> ());
dispatched!(
    /// Local scores with lanes of 16 bits; `None` where a score may have saturated.
    local_shorts, local_kernel, portable::Shorts, Shorts2, Shorts5,
    (pairs: &[super::Pair<'_>], scoring: &Scoring, band: Band, scores: &mut [Option<i32>]) -> ());
dispatched!(
    /// Global scores with lanes of bytes that hold differences between neighbouring cells.
    global_bytes, global_kernel, portable::Bytes, Bytes2, Bytes5,
    (pairs: &[super::Pair<'_>], scoring: &Scoring, band: Band, scores: &mut [Option<i32>]) -> ());
dispatched!(
    /// Local scores of one query against many targets with lanes of bytes.
    profile_bytes, profile_kernel, portable::Bytes, Bytes2, Bytes5,
    (query: &super::profile::Profile<'_>, targets: &[&[u8]], scores: &mut [Option<i32>]) -> ());
dispatched!(
    /// Local scores of one query against many targets with lanes of 16 bits.
    profile_shorts, profile_kernel, portable::Shorts, Shorts2, Shorts5,
    (query: &super::profile::Profile<'_>, targets: &[&[u8]], scores: &mut [Option<i32>]) -> ());
#[cfg(test)]
dispatched!(
    /// Common subsequences.
    common, common_kernel, portable::Words, Words2, Words5,
    (pairs: &[super::Pair<'_>], band: Band) -> super::common::Common);
#[cfg(test)]
#[inline(always)]
fn common_kernel<W: Words>(pairs: &[super::Pair<'_>], band: Band) -> super::common::Common {
    super::common::Common::of::<W>(pairs, band)
}
dispatched!(
    /// Edit distances by Myers's algorithm.
    myers, myers_kernel, portable::Words, Words2, Words5,
    (pairs: &[super::Pair<'_>], band: Band, distances: &mut [Option<u32>]) -> ());

/// Defines how many lanes a vector of an instruction set has.
macro_rules! lane_count {
    ($(#[$doc:meta])* $name:ident, $portable:ty, $avx2:ty, $avx512:ty) => {
        $(#[$doc])*
        pub(super) fn $name(set: InstructionSet) -> usize {
            match set {
                #[cfg(target_arch = "x86_64")]
                InstructionSet::Avx512 => <$avx512>::COUNT,
                #[cfg(target_arch = "x86_64")]
                InstructionSet::Avx2 => <$avx2>::COUNT,
                InstructionSet::Portable => <$portable>::COUNT,
            }
        }
    };
}

lane_count!(
    /// Pairs or targets that one vector of bytes takes.
    byte_lanes, portable::Bytes, Bytes2, Bytes5);
lane_count!(
    /// Pairs that one vector of words takes.
    word_lanes, portable::Words, Words2, Words5);
