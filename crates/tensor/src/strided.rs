//! Copying elements that lie at regular distances: slices, transposes, broadcasts, reversals, padding.

/// One dimension of a copy: how many elements, and how far apart they are on either side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Axis {
    size: usize,
    to: isize,
    from: isize,
}

/// Elements of both sides that a transposing copy handles at a time: few enough for the nearest cache.
const TILE: usize = 16;

/// The positions that `start + Σ index · step` takes for all indices, or `None` when there are no indices or the
/// positions do not fit.
pub(crate) fn reach(dims: &[usize], start: usize, steps: &[isize]) -> Option<(i128, i128)> {
    let (mut low, mut high) = (start as i128, start as i128);
    for (&size, &step) in dims.iter().zip(steps) {
        let far = (size.checked_sub(1)? as i128).checked_mul(step as i128)?;
        if far < 0 {
            low = low.checked_add(far)?;
        } else {
            high = high.checked_add(far)?;
        }
    }
    Some((low, high))
}

/// One side of a copy: `start + Σ index · step`, which lies inside its elements for every index.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Side<'a> {
    pub(crate) start: usize,
    pub(crate) steps: &'a [isize],
}

/// Copies the elements of `width` bytes for all indices of `dims`.
pub(crate) fn copy(width: usize, dims: &[usize], to: (&mut [u8], Side<'_>), from: (&[u8], Side<'_>)) {
    if dims.contains(&0) {
        return;
    }
    match width {
        1 => copy_sized::<1>(dims, to, from),
        2 => copy_sized::<2>(dims, to, from),
        4 => copy_sized::<4>(dims, to, from),
        8 => copy_sized::<8>(dims, to, from),
        _ => copy_sized::<16>(dims, to, from),
    }
}

fn copy_sized<const WIDTH: usize>(
    dims: &[usize],
    (target, to): (&mut [u8], Side<'_>),
    (source, from): (&[u8], Side<'_>),
) {
    // Elements as arrays of bytes: those may lie at any address.
    let (target, source) = (target.as_chunks_mut::<WIDTH>().0, source.as_chunks::<WIDTH>().0);
    let axes = simplified(dims, to.steps, from.steps);
    let (outer, inner) = axes.split_at(axes.len().saturating_sub(2));
    let mut counters = vec![0; outer.len()];
    let (mut to_at, mut from_at) = (to.start as isize, from.start as isize);
    loop {
        plane(target, to_at, source, from_at, inner);
        // The next index of the outer dimensions.
        let mut axis = outer.len();
        loop {
            let Some(next) = axis.checked_sub(1) else { return };
            axis = next;
            counters[axis] += 1;
            to_at += outer[axis].to;
            from_at += outer[axis].from;
            if counters[axis] < outer[axis].size {
                break;
            }
            to_at -= outer[axis].to * outer[axis].size as isize;
            from_at -= outer[axis].from * outer[axis].size as isize;
            counters[axis] = 0;
        }
    }
}

/// The dimensions without those of one element, neighbours joined that are one on both sides. The order of a copy does not
/// matter: the last dimension is the one that is densest in the target, the one before it the densest in the source.
fn simplified(dims: &[usize], to: &[isize], from: &[isize]) -> Vec<Axis> {
    let mut axes: Vec<Axis> = Vec::new();
    for ((&size, &to), &from) in dims.iter().zip(to).zip(from) {
        let axis = Axis { size, to, from };
        match axes.last_mut() {
            _ if size == 1 => {}
            Some(last) if last.to == to * size as isize && last.from == from * size as isize => {
                *last = Axis { size: last.size * size, ..axis };
            }
            _ => axes.push(axis),
        }
    }
    let last = axes.iter().enumerate().min_by_key(|(_, axis)| axis.to.unsigned_abs()).map(|(at, _)| at);
    if let Some(last) = last {
        let axis = axes.remove(last);
        if axis.from.unsigned_abs() != 1 {
            let dense = axes.iter().position(|other| other.from.unsigned_abs() == 1);
            if let Some(dense) = dense {
                let other = axes.remove(dense);
                axes.push(other);
            }
        }
        axes.push(axis);
    }
    axes
}

/// Copies the elements of at most two dimensions.
fn plane<T: Copy>(target: &mut [T], to: isize, source: &[T], from: isize, axes: &[Axis]) {
    match *axes {
        [] => target[to as usize] = source[from as usize],
        [axis] => line(target, to, source, from, axis),
        [outer, inner] if inner.from.unsigned_abs() > 1 && outer.from.unsigned_abs() == 1 => {
            // Across the grain on one side: in tiles, so that what one line has fetched the next still finds.
            for row in (0..outer.size).step_by(TILE) {
                for column in (0..inner.size).step_by(TILE) {
                    for row in row..outer.size.min(row + TILE) {
                        let part = Axis { size: TILE.min(inner.size - column), ..inner };
                        let (row, column) = (row as isize, column as isize);
                        let to = to + row * outer.to + column * inner.to;
                        line(target, to, source, from + row * outer.from + column * inner.from, part);
                    }
                }
            }
        }
        [outer, inner, ..] => {
            for row in 0..outer.size as isize {
                line(target, to + row * outer.to, source, from + row * outer.from, inner);
            }
        }
    }
}

/// Copies the elements of one dimension.
fn line<T: Copy>(target: &mut [T], to: isize, source: &[T], from: isize, axis: Axis) {
    let (to, from) = (to as usize, from as usize);
    match axis {
        Axis { size, to: 1, from: 1 } => target[to..to + size].copy_from_slice(&source[from..from + size]),
        Axis { size, to: 1, from: 0 } => target[to..to + size].fill(source[from]),
        Axis { size, to: 1, from: step @ 2.. } => {
            let source = source[from..].iter().step_by(step as usize);
            for (place, &element) in target[to..to + size].iter_mut().zip(source) {
                *place = element;
            }
        }
        Axis { size, to: to_step, from: from_step } => {
            let (mut to, mut from) = (to as isize, from as isize);
            for _ in 0..size {
                target[to as usize] = source[from as usize];
                to += to_step;
                from += from_step;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A copy by the definition.
    fn expected(dims: &[usize], target: &mut [u16], to: Side<'_>, source: &[u16], from: Side<'_>) {
        let shape = crate::Shape::new(dims).expect("small");
        let mut indices = shape.indices();
        while let Some(index) = indices.advance() {
            let at = |side: Side<'_>| {
                let far: isize = index.iter().zip(side.steps).map(|(&at, step)| at as isize * step).sum();
                (side.start as isize + far) as usize
            };
            target[at(to)] = source[at(from)];
        }
    }

    #[test]
    fn copies_are_what_the_definition_says() {
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..500 {
            let dims: Vec<usize> = (0..random.usize(0..5)).map(|_| random.usize(0..20)).collect();
            let dims: Vec<usize> = dims
                .iter()
                .map(|&dim| if dims.iter().product::<usize>() > 5000 { dim.min(4) } else { dim })
                .collect();
            // The target is dense in an order of its own; the source is, or repeats, or runs backwards.
            let mut order: Vec<usize> = (0..dims.len()).collect();
            random.shuffle(&mut order);
            let mut to_steps = vec![0; dims.len()];
            let mut from_steps = vec![0; dims.len()];
            let mut dense = 1isize;
            for &axis in &order {
                to_steps[axis] = dense;
                from_steps[axis] = match random.u8(0..4) {
                    0 => 0,
                    1 => -dense,
                    _ => dense,
                };
                dense *= dims[axis].max(1) as isize;
            }
            if random.bool() {
                random.shuffle(&mut order);
                let mut dense = 1isize;
                for &axis in &order {
                    from_steps[axis] = dense;
                    dense *= dims[axis].max(1) as isize;
                }
            }
            let reach: isize = dims
                .iter()
                .zip(&from_steps)
                .map(|(&size, &step)| -step.min(0) * size.saturating_sub(1) as isize)
                .sum();
            let (to, from) =
                (Side { start: 3, steps: &to_steps }, Side { start: reach as usize, steps: &from_steps });
            let source: Vec<u16> = (0..2 * dense as usize).map(|at| at as u16).collect();
            let mut target = vec![0u16; dense as usize + 4];
            let mut by_definition = target.clone();
            expected(&dims, &mut by_definition, to, &source, from);
            copy(
                2,
                &dims,
                (bytemuck::cast_slice_mut(&mut target), to),
                (bytemuck::cast_slice(&source), from),
            );
            assert_eq!(target, by_definition, "{dims:?} {to:?} {from:?}");
        }
    }

    #[test]
    fn the_reach_sees_both_ends() {
        assert_eq!(reach(&[3, 2], 4, &[-2, 5]), Some((0, 9)));
        assert_eq!(reach(&[], 4, &[]), Some((4, 4)));
        assert_eq!(reach(&[0], 0, &[1]), None);
    }
}
