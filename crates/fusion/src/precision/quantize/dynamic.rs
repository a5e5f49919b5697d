//! Products of a module whose activations are rounded while running: the operations that the rewrite of graphs makes, in StableHLO.
//!
//! Rows of the left operand are divided by their scales and rounded, the codes of both sides are multiplied, and the result is multiplied by
//! the scales of rows and of columns. Codes of f8E4M3FN are widened before the product: devices that multiply them read what was widened.

use std::collections::HashMap;

use warpforge_ir::attr::DotDims;
use warpforge_ir::build::{BuildError, Builder};
use warpforge_ir::{BlockId, Module, OpId, OpKind, TensorType, ValueId};
use warpforge_tensor::{ElementType, FloatType, Scalar};

use super::recipe::Recipe;
use super::store_error::StoreError;
use super::weights::{F8_MAX, I8_MAX, LEAST_SCALE};

const CODES: ElementType = ElementType::Float(FloatType::F8E4M3Fn);

/// The arguments with the codes and the scales of a weight.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stored {
    pub(super) codes: ValueId,
    pub(super) scales: ValueId,
}

/// What reads a weight: products, and the layouts and conversions before them.
#[derive(Debug, Default)]
pub(super) struct Readers {
    products: Vec<OpId>,
    between: Vec<OpId>,
}

impl Readers {
    /// The readers of a weight that only products read.
    pub(super) fn of(module: &Module, block: BlockId, weight: ValueId) -> Self {
        let (mut found, mut pending) = (Self::default(), vec![weight]);
        while let Some(value) = pending.pop() {
            for user in module.ops_in(block).filter(|op| op.operands().contains(&value)) {
                if user.kind() == Some(OpKind::DotGeneral) {
                    found.products.push(user.id());
                } else {
                    found.between.push(user.id());
                    pending.extend(user.results());
                }
            }
        }
        found
    }

    /// The first product whose left operand has sizes that only a run says.
    pub(super) fn open(&self, module: &Module) -> bool {
        let known = |op: &OpId| {
            let lhs = module.op(*op).operand(0);
            lhs.is_some_and(|lhs| module.value_type(lhs).as_tensor().is_some_and(TensorType::is_static))
        };
        !self.products.iter().all(known)
    }
}

/// Replaces the products of weights in a block by products of codes.
pub(super) fn multiply_codes(
    module: &mut Module,
    block: BlockId,
    recipe: Recipe,
    weights: &[(Readers, Stored)],
) -> Result<(), StoreError> {
    let mut products: HashMap<OpId, Stored> = HashMap::new();
    let mut gone: Vec<OpId> = Vec::new();
    for (readers, stored) in weights {
        products.extend(readers.products.iter().map(|&op| (op, *stored)));
        gone.extend(&readers.between);
    }
    let before = module.block_ops(block).to_vec();
    let (mut order, mut rounded) = (Vec::new(), HashMap::new());
    for op in before.iter().copied().filter(|op| !gone.contains(op)) {
        let Some(&stored) = products.get(&op) else {
            order.push(op);
            continue;
        };
        let start = module.block_ops(block).len();
        let value = Products { recipe, rounded: &mut rounded }.product(module, block, op, stored)?;
        order.extend(&module.block_ops(block)[start..]);
        if let Some(old) = module.op(op).result(0) {
            module.replace_uses(old, value);
        }
    }
    module.retain_ops(block, |_| false);
    order.into_iter().for_each(|op| module.append_op(block, op));
    Ok(())
}

/// Makes products; those of the same activations share their codes.
struct Products<'a> {
    recipe: Recipe,
    /// Codes and scales by the left operand and what is contracted.
    rounded: &'a mut HashMap<(ValueId, Vec<i64>), [ValueId; 2]>,
}

impl Products<'_> {
    /// Appends what replaces a product.
    fn product(
        &mut self,
        module: &mut Module,
        block: BlockId,
        op: OpId,
        stored: Stored,
    ) -> Result<ValueId, StoreError> {
        let product = module.op(op);
        let (lhs, result) = (product.operand(0), product.result_tensor(0));
        let (Some(lhs), Some(result), Some(dims)) = (lhs, result, product.dot_dims()) else {
            return Err(StoreError::Product(op_name(module, op)));
        };
        let element = result.element().plain().ok_or_else(|| StoreError::Product(op_name(module, op)))?;
        let contracted = dims.lhs_contracting.clone();
        let location = module.location(op).map(Into::into);
        let mut builder = Builder::at(module, block);
        builder.set_location(location);
        let key = (lhs, contracted.clone());
        let [codes, scales] = match self.rounded.get(&key) {
            Some(&known) => known,
            None => {
                let made = self.activations(&mut builder, lhs, &contracted)?;
                *self.rounded.entry(key).or_insert(made)
            }
        };
        let is_integer = self.recipe == Recipe::Int8Dynamic;
        let weights = match is_integer {
            true => stored.codes,
            false => builder.convert(stored.codes, ElementType::F32)?,
        };
        let sums = if is_integer { ElementType::I32 } else { ElementType::F32 };
        let dims = DotDims {
            lhs_batching: vec![],
            rhs_batching: vec![],
            lhs_contracting: contracted,
            rhs_contracting: vec![1],
        };
        let mut value = builder.dot_general(codes, weights, dims, Some(sums.into()))?;
        if is_integer {
            value = builder.convert(value, ElementType::F32)?;
        }
        let shape = shape(&builder, value)?;
        let last = shape.len() as i64 - 1;
        // A scale for each row, and for each column; or one for all.
        for (factor, along) in [(scales, (0..last).collect::<Vec<_>>()), (stored.scales, vec![last])] {
            let along = if builder.tensor_type(factor)?.rank() == 0 { vec![] } else { along };
            let factor = repeated(&mut builder, factor, &shape, &along)?;
            value = builder.binary(OpKind::Multiply, value, factor)?;
        }
        if element != ElementType::F32 {
            value = builder.convert(value, element)?;
        }
        Ok(value)
    }

    /// The codes of a left operand, of f8E4M3FN widened to f32, and the scales of its rows, or the one of all.
    fn activations(
        &self,
        builder: &mut Builder<'_>,
        lhs: ValueId,
        contracted: &[i64],
    ) -> Result<[ValueId; 2], BuildError> {
        let mut x = lhs;
        if builder.tensor_type(x)?.element().plain() != Some(ElementType::F32) {
            x = builder.convert(x, ElementType::F32)?;
        }
        let dims = shape(builder, x)?;
        let free: Vec<i64> = (0..dims.len() as i64).filter(|at| !contracted.contains(at)).collect();
        let mut along = contracted.to_vec();
        along.sort_unstable();
        let most = if self.recipe == Recipe::Int8Dynamic { I8_MAX } else { F8_MAX };
        let size = builder.unary(OpKind::Abs, x)?;
        let lowest = builder.scalar(ElementType::F32, number(f32::NEG_INFINITY))?;
        let mut largest = builder.reduce(OpKind::Maximum, size, lowest, &along)?;
        let by_row = self.recipe != Recipe::Float8DynamicTensor;
        if !by_row && !free.is_empty() {
            let all: Vec<i64> = (0..free.len() as i64).collect();
            largest = builder.reduce(OpKind::Maximum, largest, lowest, &all)?;
        }
        let part = builder.splat_like(largest, number(1.0 / most))?;
        let scale = builder.binary(OpKind::Multiply, largest, part)?;
        let least = builder.splat_like(scale, number(LEAST_SCALE))?;
        let scale = builder.binary(OpKind::Maximum, scale, least)?;
        let one = builder.splat_like(scale, number(1.0))?;
        let inverse = builder.binary(OpKind::Divide, one, scale)?;
        let inverse = repeated(builder, inverse, &dims, if by_row { &free } else { &[] })?;
        let steps = builder.binary(OpKind::Multiply, x, inverse)?;
        if self.recipe == Recipe::Int8Dynamic {
            let steps = builder.unary(OpKind::RoundNearestEven, steps)?;
            return Ok([builder.convert(steps, ElementType::I8)?, scale]);
        }
        let codes = builder.convert(steps, CODES)?;
        Ok([builder.convert(codes, ElementType::F32)?, scale])
    }
}

/// The name of a product for people.
fn op_name(module: &Module, op: OpId) -> String {
    module.location(op).unwrap_or("of the module").to_owned()
}

fn number(value: f32) -> Scalar {
    Scalar::Float(f64::from(value))
}

fn shape(builder: &Builder<'_>, value: ValueId) -> Result<Vec<u64>, BuildError> {
    let sizes = builder.tensor_type(value)?.shape_usize().unwrap_or_default();
    Ok(sizes.into_iter().map(|size| size as u64).collect())
}

fn repeated(
    builder: &mut Builder<'_>,
    value: ValueId,
    shape: &[u64],
    along: &[i64],
) -> Result<ValueId, BuildError> {
    builder.broadcast_in_dim(value, shape, along)
}
