//! Padding.

use crate::data_movement::{AxisPadding, Layout, LayoutError, Pad};
use crate::testing::{indices, noise, position, with_pools};

#[test]
fn random_padding() {
    let mut random = fastrand::Rng::with_seed(2);
    let mut taken = 0;
    for _ in 0..500 {
        let rank = random.usize(..5);
        let dims: Vec<usize> = (0..rank).map(|_| random.usize(..[0, 200, 40, 12, 8][rank])).collect();
        let edges: Vec<AxisPadding> = (0..rank)
            .map(|_| AxisPadding {
                low: random.i64(-3..4),
                high: random.i64(-3..4),
                interior: if random.bool() { 0 } else { random.usize(..3) },
            })
            .collect();
        let data = noise(&mut random, dims.iter().product::<usize>() * 4);
        let value = [1u8, 2, 3, 4];
        let pad = match Pad::new(4, &dims, &Layout::row_major(&dims).unwrap(), &edges) {
            Ok(pad) => pad,
            Err(LayoutError::Sizes(_)) => continue,
            Err(other) => panic!("{other}"),
        };
        taken += 1;
        let padded = pad.dims();
        let ours = with_pools(padded.iter().product::<usize>() * 4, |pool, result| {
            // SAFETY: all buffers have all elements.
            unsafe { pad.run(pool, data.as_ptr(), value.as_ptr(), result) };
        });
        let mut wanted: Vec<u8> = value.into_iter().cycle().take(ours.len()).collect();
        for index in indices(&dims) {
            let to: Option<Vec<usize>> = (0..rank)
                .map(|dim| {
                    let at = edges[dim].low + (index[dim] * (edges[dim].interior + 1)) as i64;
                    usize::try_from(at).ok().filter(|&at| at < padded[dim])
                })
                .collect();
            if let Some(to) = to {
                let (from, to) = (position(&dims, &index) * 4, position(padded, &to) * 4);
                wanted[to..to + 4].copy_from_slice(&data[from..from + 4]);
            }
        }
        assert!(ours == wanted, "{dims:?} {edges:?}");
    }
    assert!(taken > 200, "{taken}");
}

#[test]
fn invalid_padding_is_rejected() {
    let layout = Layout::row_major(&[2]).unwrap();
    let pad = |edge: AxisPadding| Pad::new(4, &[2], &layout, &[edge]).map(|pad| pad.dims().to_vec());
    assert_eq!(pad(AxisPadding { low: -1, high: -1, interior: 0 }), Ok(vec![0]));
    assert!(matches!(pad(AxisPadding { low: -2, high: -1, interior: 0 }), Err(LayoutError::Sizes(_))));
    assert_eq!(pad(AxisPadding { low: i64::MAX, high: 0, interior: 0 }), Err(LayoutError::Overflow));
    assert_eq!(pad(AxisPadding { low: 0, high: 0, interior: usize::MAX }), Err(LayoutError::Overflow));
    assert_eq!(pad(AxisPadding { low: -i64::MAX, high: i64::MAX, interior: 0 }), Ok(vec![2]));
    let single =
        Pad::new(4, &[1], &layout, &[AxisPadding { low: 1, high: 1, interior: usize::MAX }]).unwrap();
    assert_eq!(single.dims(), [3]);
    assert!(Pad::new(4, &[2], &layout, &[]).is_err());
}
