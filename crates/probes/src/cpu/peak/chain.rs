//! Independent chains of one arithmetic instruction, and the data they run on.
//!
//! Every chain is one accumulator in a register. An iteration takes each chain two steps: `x = op(x, p0, q0)`, then
//! `x = op(x, p1, q1)`. Two different steps keep the values moving and bounded for ever: for a fused multiply-add
//! the two multipliers undo each other but for a few percent, for a dot product the second step subtracts what the
//! first has added.

use crate::cpu::bf16::Bf16;

/// The state of `CHAINS` chains: operands of `P` and `Q`, `V` of them a register, and accumulators of `A`, `L` of them
/// a register.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Chains<P, Q, A, const V: usize, const L: usize, const CHAINS: usize> {
    pub(super) p: [[P; V]; 2],
    pub(super) q: [[Q; V]; 2],
    pub(super) acc: [[A; L]; CHAINS],
}

/// Chains of fused multiply-adds, `x = x * p + q`.
pub(super) type Fma<T, const LANES: usize, const CHAINS: usize> = Chains<T, T, T, LANES, LANES, CHAINS>;
/// Chains of sums of products of bf16 pairs.
pub(super) type Bf16Dot<const V: usize, const L: usize, const CHAINS: usize> =
    Chains<Bf16, Bf16, f32, V, L, CHAINS>;

/// Data that stays finite and ordinary however long a kernel runs on it.
pub(super) trait Ordinary {
    /// The data.
    fn ordinary(random: &mut fastrand::Rng) -> Self;

    /// A value that depends on every accumulator.
    fn checksum(&self) -> f64;
}

/// Runs a kernel on ordinary data.
pub(super) fn run<C: Ordinary>(kernel: impl FnOnce(&mut C)) -> f64 {
    let mut chains = C::ordinary(&mut fastrand::Rng::with_seed(0x5eed));
    kernel(&mut chains);
    chains.checksum()
}

macro_rules! ordinary_fma {
    ($type:ty) => {
        impl<const LANES: usize, const CHAINS: usize> Ordinary for Fma<$type, LANES, CHAINS> {
            fn ordinary(random: &mut fastrand::Rng) -> Self {
                let mut within = |low: f64, high: f64| (low + random.f64() * (high - low)) as $type;
                // 1.25 * 0.76 < 1: each pair of steps brings the values nearer to a cycle of two values near 1.
                Self {
                    p: [[(); LANES].map(|()| within(1.2, 1.25)), [(); LANES].map(|()| within(0.74, 0.76))],
                    q: [[(); LANES].map(|()| within(0.2, 0.4)), [(); LANES].map(|()| within(-0.2, -0.1))],
                    acc: [[(); LANES]; CHAINS].map(|lanes| lanes.map(|()| within(0.5, 2.0))),
                }
            }

            fn checksum(&self) -> f64 {
                self.acc.as_flattened().iter().map(|&value| f64::from(value)).sum()
            }
        }
    };
}

ordinary_fma!(f32);
ordinary_fma!(f64);

impl<const V: usize, const L: usize, const CHAINS: usize> Ordinary for Bf16Dot<V, L, CHAINS> {
    fn ordinary(random: &mut fastrand::Rng) -> Self {
        let p = [(); V].map(|()| bf16(random));
        let q = [(); V].map(|()| bf16(random));
        Self {
            p: [p, p],
            q: [q, q.map(|value| -value)],
            acc: [[(); L]; CHAINS].map(|lanes| lanes.map(|()| bf16(random).to_f32())),
        }
    }

    fn checksum(&self) -> f64 {
        self.acc.as_flattened().iter().map(|&value| f64::from(value)).sum()
    }
}

macro_rules! ordinary_int8 {
    ($p:ty) => {
        impl<const V: usize, const L: usize, const CHAINS: usize> Ordinary
            for Chains<$p, i8, i32, V, L, CHAINS>
        {
            fn ordinary(random: &mut fastrand::Rng) -> Self {
                // Seven bits: some instructions add two products in 16 bits and would saturate on larger ones.
                let p = [(); V].map(|()| random.u8(0..=127) as $p);
                let q = [(); V].map(|()| random.i8(-127..=127));
                Self {
                    p: [p, p],
                    q: [q, q.map(|value| -value)],
                    acc: [[(); L]; CHAINS].map(|lanes| lanes.map(|()| random.i32(-100_000..100_000))),
                }
            }

            fn checksum(&self) -> f64 {
                self.acc.as_flattened().iter().map(|&value| f64::from(value)).sum()
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
ordinary_int8!(u8);
#[cfg(target_arch = "aarch64")]
ordinary_int8!(i8);

/// A random bf16 of either sign and size 0.5 to 1. Products of two have 16 bits below the point, so that a few
/// hundred of them are summed in f32 without rounding, and subtracting restores exactly what was there.
pub(super) fn bf16(random: &mut fastrand::Rng) -> Bf16 {
    let size = f32::from(128 + random.u8(0..128)) / 256.0;
    Bf16::from_f32(if random.bool() { size } else { -size })
}

/// Defines a kernel: the chains are loaded into registers, taken `iterations` times two steps, and stored.
macro_rules! chain_kernel {
    (
        $(#[$attribute:meta])*
        fn $name:ident($chains:ty; accumulators $acc:ty; operands $p:ty, $q:ty);
        |$x:ident, $left:ident, $right:ident| $step:expr
    ) => {
        $(#[$attribute])*
        fn $name(chains: &mut $chains, iterations: u64) {
            use crate::cpu::register::{load, store};
            let p: [$p; 2] = [load(&chains.p[0]), load(&chains.p[1])];
            let q: [$q; 2] = [load(&chains.q[0]), load(&chains.q[1])];
            let mut acc = chains.acc.each_ref().map(|lanes| load::<$acc, _, _>(lanes));
            for _ in 0..iterations {
                for step in 0..2 {
                    let ($left, $right) = (p[step], q[step]);
                    for $x in &mut acc {
                        $step;
                    }
                }
            }
            for (lanes, register) in chains.acc.iter_mut().zip(acc) {
                store(register, lanes);
            }
        }
    };
}
pub(super) use chain_kernel;

/// Runs a kernel for a few iterations on data whose two steps do not undo each other, and compares every lane with
/// the same steps made one element at a time. An instruction that did nothing, or something else, shows.
pub(super) fn verify<P, Q, A, const V: usize, const L: usize, const CHAINS: usize>(
    kernel: impl Fn(&mut Chains<P, Q, A, V, L, CHAINS>, u64),
    step: impl Fn(&mut [A; L], &[P; V], &[Q; V]),
) -> bool
where
    Chains<P, Q, A, V, L, CHAINS>: Ordinary,
    P: Copy,
    Q: Copy,
    A: Copy + PartialEq,
{
    let mut random = fastrand::Rng::with_seed(7);
    [0, 1, 2, 5].into_iter().all(|iterations| {
        let mut ours: Chains<P, Q, A, V, L, CHAINS> = Ordinary::ordinary(&mut random);
        let other: Chains<P, Q, A, V, L, CHAINS> = Ordinary::ordinary(&mut random);
        (ours.p[1], ours.q[1]) = (other.p[0], other.q[0]);
        let mut expected = ours.acc;
        for lanes in &mut expected {
            for _ in 0..iterations {
                step(lanes, &ours.p[0], &ours.q[0]);
                step(lanes, &ours.p[1], &ours.q[1]);
            }
        }
        kernel(&mut ours, iterations);
        ours.acc == expected
    })
}

/// A step of a fused multiply-add, one element at a time.
pub(super) fn fma<T: MulAdd, const L: usize>(x: &mut [T; L], p: &[T; L], q: &[T; L]) {
    for (x, (&p, &q)) in x.iter_mut().zip(p.iter().zip(q)) {
        *x = x.mul_add(p, q);
    }
}

/// Floating point with a fused multiply-add.
pub(super) trait MulAdd: Copy {
    /// `self * factor + addend`, rounded once.
    fn mul_add(self, factor: Self, addend: Self) -> Self;
}

impl MulAdd for f32 {
    fn mul_add(self, factor: Self, addend: Self) -> Self {
        f32::mul_add(self, factor, addend)
    }
}

impl MulAdd for f64 {
    fn mul_add(self, factor: Self, addend: Self) -> Self {
        f64::mul_add(self, factor, addend)
    }
}

/// A step of a dot product of `V / L` elements for each accumulator, one element at a time.
pub(super) fn dot<P: Copy, Q: Copy, A: std::ops::AddAssign, const V: usize, const L: usize>(
    x: &mut [A; L],
    p: &[P; V],
    q: &[Q; V],
    product: impl Fn(P, Q) -> A,
    sum: impl Fn(&mut dyn Iterator<Item = A>) -> A,
) {
    let group = V / L;
    for (at, x) in x.iter_mut().enumerate() {
        *x += sum(&mut (group * at..group * (at + 1)).map(|i| product(p[i], q[i])));
    }
}
