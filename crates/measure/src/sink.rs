//! A place for results that nobody reads.

/// Takes a value and returns it in a way the compiler cannot see through, so that the work that made it, and what
/// depends on it, stays in the program.
///
/// Put a benchmark's inputs through it as well as its results: an input the compiler knows is work it can do ahead.
/// It costs at most a store and a load; keep it out of the innermost loop.
#[inline]
pub fn sink<T>(value: T) -> T {
    std::hint::black_box(value)
}
