//! How fast the core runs right now.

use std::time::Instant;

/// Multiplications in a piece; at 3 cycles each some microseconds, short enough to fit between two interrupts.
const PIECE: u32 = 4096;

/// Pieces of which the fastest counts: what interrupts one makes it slower.
const PIECES: usize = 3;

/// The speed of the core that the caller is on, in dependent multiplications a nanosecond.
///
/// Each multiplication waits for the one before it, so the time is a fixed number of cycles whatever else the core
/// could do meanwhile: the figure follows the clock, and the share of the core that its neighbours leave. It is for
/// comparing moments on one machine, where a virtual machine does not report its clock, and takes some ten microseconds.
#[must_use]
pub fn core_speed() -> f64 {
    let piece = || {
        let start = Instant::now();
        let mut value = std::hint::black_box(0x9e37_79b9_7f4a_7c15_u64);
        for _ in 0..PIECE / 8 {
            // Eight in a row hide the loop's own work behind the multiplier.
            for _ in 0..8 {
                value = value.wrapping_mul(value);
            }
        }
        std::hint::black_box(value);
        f64::from(PIECE) / (start.elapsed().as_nanos().max(1) as f64)
    };
    (0..PIECES).map(|_| piece()).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    #[test]
    fn it_is_some_speed() {
        let speed = super::core_speed();
        assert!(speed > 0.0 && speed.is_finite(), "{speed}");
    }
}
