//! Constants to the precision of [`Wide`], least significant limb first; computed with mpmath at 3000 bits.

use super::Wide;

/// The ratio of a circle's circumference to its diameter.
pub(super) const PI: Wide = Wide {
    negative: false,
    exponent: 2,
    limbs: [
        0xef9519b3cd3a431b,
        0x514a08798e3404dd,
        0x020bbea63b139b22,
        0x29024e088a67cc74,
        0xc4c6628b80dc1cd1,
        0xc90fdaa22168c234,
    ],
};

/// The natural logarithm of two.
pub(super) const LN_2: Wide = Wide {
    negative: false,
    exponent: 0,
    limbs: [
        0x559552fb4afa1b10,
        0xe7b876206debac98,
        0x8a0d175b8baafa2b,
        0x40f343267298b62d,
        0xc9e3b39803f2f6af,
        0xb17217f7d1cf79ab,
    ],
};

/// The fraction bits of 2/π, most significant first: enough to reduce the largest binary64.
pub(super) const TWO_OVER_PI: [u64; 28] = [
    0xa2f9836e4e441529,
    0xfc2757d1f534ddc0,
    0xdb6295993c439041,
    0xfe5163abdebbc561,
    0xb7246e3a424dd2e0,
    0x06492eea09d1921c,
    0xfe1deb1cb129a73e,
    0xe88235f52ebb4484,
    0xe99c7026b45f7e41,
    0x3991d639835339f4,
    0x9c845f8bbdf9283b,
    0x1ff897ffde05980f,
    0xef2f118b5a0a6d1f,
    0x6d367ecf27cb09b7,
    0x4f463f669e5fea2d,
    0x7527bac7ebe5f17b,
    0x3d0739f78a5292ea,
    0x6bfb5fb11f8d5d08,
    0x56033046fc7b6bab,
    0xf0cfbc209af4361d,
    0xa9e391615ee61b08,
    0x6599855f14a06840,
    0x8dffd8804d732731,
    0x06061556ca73a8c9,
    0x60e27bc08c6b47c4,
    0x19c367cddce8092a,
    0x8359c4768b961ca6,
    0xddaf44d15719053e,
];
