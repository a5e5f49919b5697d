//! Non-maximum suppression: of boxes that overlap, the ones with the highest scores.

use warpforge_tensor::{ElementType, FloatType};

use super::error::RegionError;
use super::real::Real;

/// A planned suppression.
#[derive(Debug, Clone)]
pub struct Nms {
    count: usize,
    threshold: f64,
    double: bool,
}

/// Boxes in the order of their scores, each coordinate by itself so that loops over boxes are vectors.
struct Ordered<T> {
    /// Left, top, right, bottom and area.
    numbers: [Vec<T>; 5],
    places: Vec<usize>,
}

impl Nms {
    /// Leaves out boxes whose intersection over union with a better one is above the threshold.
    ///
    /// # Errors
    ///
    /// When the element type has no kernel, or sizes overflow.
    pub fn new(element: ElementType, count: usize, threshold: f64) -> Result<Self, RegionError> {
        let double = match element {
            ElementType::Float(FloatType::F32) => false,
            ElementType::Float(FloatType::F64) => true,
            other => return Err(RegionError::Element(other)),
        };
        count.checked_mul(32).ok_or(RegionError::Sizes)?;
        Ok(Self { count, threshold, double })
    }

    /// The places of the boxes of f32 that are kept, highest score first.
    ///
    /// # Panics
    ///
    /// When there are not as many scores as boxes.
    #[must_use]
    pub fn kept_of(boxes: &[[f32; 4]], scores: &[f32], threshold: f64) -> Vec<usize> {
        assert_eq!(boxes.len(), scores.len(), "each box has a score");
        Self { count: boxes.len(), threshold, double: false }.kept(boxes, scores)
    }

    /// Writes the places of the boxes that are kept, highest score first, then -1. Each box depends on the better ones, so
    /// this is one thread's work.
    ///
    /// # Safety
    ///
    /// Boxes (left, top, right, bottom) and scores may be read and the target, 64-bit integers, written, as large as
    /// planned and aligned; they have no byte in common.
    pub unsafe fn run(&self, boxes: *const u8, scores: *const u8, target: *mut u8) {
        // SAFETY: as the caller promises.
        let kept = unsafe {
            match self.double {
                false => self.kept_at::<f32>(boxes.cast(), scores.cast()),
                true => self.kept_at::<f64>(boxes.cast(), scores.cast()),
            }
        };
        // SAFETY: as the caller promises.
        let target = unsafe { std::slice::from_raw_parts_mut(target.cast::<i64>(), self.count) };
        target.fill(-1);
        for (value, place) in target.iter_mut().zip(kept) {
            *value = place as i64;
        }
    }

    unsafe fn kept_at<T: Real>(&self, boxes: *const T, scores: *const T) -> Vec<usize> {
        // SAFETY: as the caller promises; four numbers are an array of four.
        let (boxes, scores) = unsafe {
            (
                std::slice::from_raw_parts(boxes.cast::<[T; 4]>(), self.count),
                std::slice::from_raw_parts(scores, self.count),
            )
        };
        self.kept(boxes, scores)
    }

    fn kept<T: Real>(&self, boxes: &[[T; 4]], scores: &[T]) -> Vec<usize> {
        let ordered = ordered(boxes, scores);
        let mut suppressed = vec![false; self.count];
        let mut kept = Vec::new();
        for at in 0..self.count {
            if !suppressed[at] {
                kept.push(ordered.places[at]);
                self.suppress(&ordered, at, &mut suppressed);
            }
        }
        kept
    }

    /// Marks the boxes after one that overlap it too much.
    fn suppress<T: Real>(&self, ordered: &Ordered<T>, at: usize, suppressed: &mut [bool]) {
        let [left, top, right, bottom, area] = &ordered.numbers;
        let own = [left[at], top[at], right[at], bottom[at], area[at]];
        let after = at + 1;
        let rest = left[after..].iter().zip(&top[after..]).zip(&right[after..]);
        let rest = rest.zip(&bottom[after..]).zip(&area[after..]).zip(&mut suppressed[after..]);
        for (((((&left, &top), &right), &bottom), &area), suppressed) in rest {
            let width = (own[2].smaller(right) - own[0].larger(left)).larger(T::default());
            let height = (own[3].smaller(bottom) - own[1].larger(top)).larger(T::default());
            let both = width * height;
            let overlap = both / (own[4] + area - both);
            *suppressed |= overlap.to_f64() > self.threshold;
        }
    }
}

/// The boxes from the highest score down, NaN first; equal ones keep their order.
fn ordered<T: Real>(boxes: &[[T; 4]], scores: &[T]) -> Ordered<T> {
    let mut places: Vec<usize> = (0..boxes.len()).collect();
    places.sort_by(|&a, &b| {
        let [a, b] = [a, b].map(|place| scores[place].to_f64());
        b.partial_cmp(&a).unwrap_or_else(|| b.is_nan().cmp(&a.is_nan()))
    });
    let column = |number: usize| places.iter().map(|&place| boxes[place][number]).collect();
    let area = |&place: &usize| {
        let [left, top, right, bottom] = boxes[place];
        (right - left) * (bottom - top)
    };
    let areas = places.iter().map(area).collect();
    Ordered { numbers: [column(0), column(1), column(2), column(3), areas], places }
}
