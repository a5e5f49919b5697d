//! Window operations against loops over every element.

mod cumulative;
mod depthwise;
mod reduce_window;
mod select_and_scatter;

use crate::window::WindowAxis;

/// A random window.
fn random_axis(random: &mut fastrand::Rng) -> WindowAxis {
    WindowAxis {
        size: random.usize(1..4),
        stride: random.usize(1..4),
        low: random.i64(-1..3),
        high: random.i64(-1..3),
        dilation: random.usize(1..3),
        base_dilation: if random.u8(..3) == 0 { 2 } else { 1 },
    }
}

/// The input index of an element of a window.
fn input_index(axis: &WindowAxis, size: usize, window: usize, element: usize) -> Option<usize> {
    let dilated: Vec<Option<usize>> = (0..size)
        .flat_map(|at| std::iter::once(Some(at)).chain((1..axis.base_dilation).map(|_| None)))
        .collect();
    let at = (window * axis.stride + element * axis.dilation) as i64 - axis.low;
    usize::try_from(at).ok().and_then(|at| dilated.get(at).copied().flatten())
}

#[test]
fn window_counts() {
    let axis = |size, stride, low, high| WindowAxis { size, stride, low, high, ..WindowAxis::default() };
    assert_eq!(axis(3, 2, 1, 1).count(112), Ok(56));
    assert_eq!(axis(3, 1, 0, 0).count(2), Ok(0));
    assert_eq!(axis(1, 1, 0, 0).count(0), Ok(0));
    assert_eq!(axis(2, 1, 1, 1).count(0), Ok(1));
    assert!(axis(0, 1, 0, 0).count(1).is_err());
    assert!(axis(1, 0, 0, 0).count(1).is_err());
    assert!(axis(1, 1, i64::MAX, 1).count(1).is_err());
    assert!(axis(usize::MAX, 1, 0, 0).count(1).is_err());
}
