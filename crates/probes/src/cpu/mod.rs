//! Arithmetic: peak rates of the widest instructions the processor has, and matrix products.
