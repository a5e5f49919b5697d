//! The inverse DCT of libjpeg's "slow" integer method (`jidctint.c`), after Loeffler, Ligtenberg and Moschytz.

use std::num::Wrapping;

/// Bits after the point of the constants.
const CONST_BITS: usize = 13;
/// Bits after the point between the passes.
const PASS1_BITS: usize = 2;

type Number = Wrapping<i32>;

/// The samples of a block of coefficients, both row by row.
pub(super) fn block(coefficients: &[i16; 64], table: &[u16; 64]) -> [u8; 64] {
    let mut values: [Number; 64] = std::array::from_fn(|index| {
        Wrapping(i32::from(coefficients[index])) * Wrapping(i32::from(table[index]))
    });
    for column in 0..8 {
        let outputs = eight(std::array::from_fn(|row| values[row * 8 + column]));
        for (row, output) in outputs.into_iter().enumerate() {
            values[row * 8 + column] = descale(output, CONST_BITS - PASS1_BITS);
        }
    }
    let mut samples = [0; 64];
    for row in 0..8 {
        let outputs = eight(std::array::from_fn(|column| values[row * 8 + column]));
        for (column, output) in outputs.into_iter().enumerate() {
            let Wrapping(value) = descale(output, CONST_BITS + PASS1_BITS + 3);
            samples[row * 8 + column] = value.saturating_add(128).clamp(0, 255) as u8;
        }
    }
    samples
}

fn descale(value: Number, bits: usize) -> Number {
    (value + Wrapping(1 << (bits - 1))) >> bits
}

/// One dimension, scaled up by `CONST_BITS`. Constants are fixed-point numbers, their values in the comments.
fn eight(input: [Number; 8]) -> [Number; 8] {
    let w = Wrapping::<i32>;
    let common = (input[2] + input[6]) * w(4433); // 0.541196100
    let two = common - input[6] * w(15137); // 1.847759065
    let three = common + input[2] * w(6270); // 0.765366865
    let zero = (input[0] + input[4]) << CONST_BITS;
    let one = (input[0] - input[4]) << CONST_BITS;
    let even = [zero + three, one + two, one - two, zero - three];

    let z5 = (input[7] + input[3] + input[5] + input[1]) * w(9633); // 1.175875602
    let z1 = -(input[7] + input[1]) * w(7373); // 0.899976223
    let z2 = -(input[5] + input[3]) * w(20995); // 2.562915447
    let z3 = z5 - (input[7] + input[3]) * w(16069); // 1.961570560
    let z4 = z5 - (input[5] + input[1]) * w(3196); // 0.390180644
    let odd = [
        input[1] * w(12299) + z1 + z4, // 1.501321110
        input[3] * w(25172) + z2 + z3, // 3.072711026
        input[5] * w(16819) + z2 + z4, // 2.053119869
        input[7] * w(2446) + z1 + z3,  // 0.298631336
    ];
    std::array::from_fn(|index| match index {
        0..4 => even[index] + odd[index],
        _ => even[7 - index] - odd[7 - index],
    })
}
