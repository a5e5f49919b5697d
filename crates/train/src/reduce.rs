//! Gradients averaged over ranks: an all-reduce for each bucket of gradients, started as soon as the last of them is computed.

use std::collections::HashMap;

use warpforge_ir::attr::Attribute;
use warpforge_ir::build::Builder;
use warpforge_ir::{ElementType, OpId, OpKind, Type, ValueId};

use crate::TrainError;

/// The custom call that starts to average gradients over all ranks. It takes, where gradients are accumulated, whether they are
/// complete, then the gradients, and gives a number for [`REDUCE_DONE`]. Its `backend_config` says which of how many buckets of a run it is,
/// such as `0/3`: ranks send buckets in that order, whatever the order of the calls is.
pub const REDUCE_START: &str = "warpforge.all_reduce_start";

/// The custom call that waits for what [`REDUCE_START`] started, and gives the averaged gradients. It takes the number of its bucket, then
/// those of all others, so that all are started before one is waited for. Gradients that are not complete
/// come back as they were.
pub const REDUCE_DONE: &str = "warpforge.all_reduce_done";

/// Gradients that travel together, by their positions.
struct Bucket {
    gradients: Vec<usize>,
    element: Option<ElementType>,
    bytes: usize,
    /// Where in the block the last of its values is computed.
    ready_at: usize,
}

/// Replaces gradients by their averages over all ranks.
pub(crate) fn all_reduce(
    b: &mut Builder<'_>,
    bucket_bytes: usize,
    ready: Option<ValueId>,
    gradients: &mut [ValueId],
) -> Result<(), TrainError> {
    let block = b.block();
    let places: HashMap<OpId, usize> =
        b.module().block_ops(block).iter().enumerate().map(|(at, &op)| (op, at)).collect();
    let place = |b: &Builder<'_>, value: ValueId| {
        b.module().defining_op(value).and_then(|op| places.get(&op.id()).copied()).unwrap_or(0)
    };
    let first = ready.map_or(0, |ready| place(b, ready));
    let mut order: Vec<(usize, usize)> =
        gradients.iter().enumerate().map(|(at, &value)| (place(b, value).max(first), at)).collect();
    order.sort_unstable();
    let mut buckets: Vec<Bucket> = Vec::new();
    for (ready_at, at) in order {
        let ty = b.tensor_type(gradients[at])?;
        let element = ty.element().plain();
        let width = element.map_or(0, ElementType::byte_width);
        let bytes = ty.shape_usize().map_or(0, |dims| dims.iter().product::<usize>()) * width;
        match buckets.last_mut() {
            Some(bucket) if bucket.element == element && bucket.bytes + bytes <= bucket_bytes => {
                bucket.gradients.push(at);
                bucket.bytes += bytes;
                bucket.ready_at = ready_at;
            }
            _ => buckets.push(Bucket { gradients: vec![at], element, bytes, ready_at }),
        }
    }
    let mut started: Vec<(OpId, ValueId, usize)> = Vec::new();
    for (number, bucket) in buckets.iter().enumerate() {
        let given = bucket.gradients.iter().map(|&at| gradients[at]);
        let operands: Vec<ValueId> = ready.into_iter().chain(given).collect();
        let ticket = Type::tensor(&[], ElementType::I64);
        let op = b.create(
            OpKind::CustomCall,
            &operands,
            call(REDUCE_START, Some(format!("{number}/{}", buckets.len()))),
            vec![],
            Some(&[ticket]),
        )?;
        let ticket = b.results(op);
        started.extend(ticket.first().map(|&ticket| (op, ticket, bucket.ready_at)));
    }
    // Buckets are in the order of their places: from the last to the first, none moves another.
    let module = b.module_mut();
    module.retain_ops(block, |op| started.iter().all(|(other, ..)| other != op));
    for &(op, _, ready_at) in started.iter().rev() {
        module.insert_op(block, ready_at + 1, op);
    }
    for (bucket, &(_, ticket, _)) in buckets.iter().zip(&started) {
        let others = started.iter().map(|&(_, other, _)| other).filter(|&other| other != ticket);
        let tickets: Vec<ValueId> = std::iter::once(ticket).chain(others).collect();
        let types: Vec<Type> = bucket.gradients.iter().map(|&at| b.ty(gradients[at]).clone()).collect();
        let op = b.create(OpKind::CustomCall, &tickets, call(REDUCE_DONE, None), vec![], Some(&types))?;
        for (&at, averaged) in bucket.gradients.iter().zip(b.results(op)) {
            gradients[at] = averaged;
        }
    }
    Ok(())
}

fn call(target: &str, config: Option<String>) -> Vec<(&'static str, Attribute)> {
    let mut attrs = vec![("call_target_name", Attribute::string(target))];
    attrs.extend(config.map(|config| ("backend_config", Attribute::string(config))));
    attrs
}

#[cfg(test)]
mod tests {
    use warpforge_diag::Source;
    use warpforge_ir::{Module, OpKind};
    use warpforge_snakeburger::text;

    use super::{REDUCE_DONE, REDUCE_START};
    use crate::parallel_step;

    /// The gradient of the last layer is there before that of the first is computed.
    const TEXT: &str = r#"func.func @main(
        %v: tensor<4xf32> {warpforge.name = "v", warpforge.role = "parameter"},
        %w: tensor<4xf32> {warpforge.name = "w", warpforge.role = "parameter"},
        %x: tensor<4xf32> {warpforge.name = "x"})
        -> (tensor<4xf32> {warpforge.name = "grad.v", warpforge.role = "gradient", warpforge.of = "v"},
            tensor<4xf32> {warpforge.name = "grad.w", warpforge.role = "gradient", warpforge.of = "w"}) {
      %0 = stablehlo.multiply %v, %x : tensor<4xf32>
      %1 = stablehlo.sine %w : tensor<4xf32>
      %2 = stablehlo.multiply %1, %x : tensor<4xf32>
      func.return %2, %0 : tensor<4xf32>, tensor<4xf32>
    }"#;

    /// The names of the operations, custom calls by their targets.
    fn operations(recipe: &str, bucket_bytes: usize) -> Vec<String> {
        let module: Module = text::parse(&Source::new("m", TEXT), &text::Options::default()).unwrap();
        let step = parallel_step(&module, "main", &recipe.parse().unwrap(), bucket_bytes).unwrap();
        let block = step.function("main").unwrap().body().unwrap();
        let name = |op: warpforge_ir::OpRef<'_>| match op.is(OpKind::CustomCall) {
            true => op.attr_str("call_target_name").unwrap_or_default().to_owned(),
            false => op.name().to_owned(),
        };
        step.ops_in(block).map(name).collect()
    }

    fn places(operations: &[String], name: &str) -> Vec<usize> {
        operations.iter().enumerate().filter(|(_, one)| *one == name).map(|(at, _)| at).collect()
    }

    #[test]
    fn a_bucket_starts_while_other_gradients_are_computed() {
        let found = operations("sgd,lr=0.1", 16);
        let (starts, done) = (places(&found, REDUCE_START), places(&found, REDUCE_DONE));
        let backward = places(&found, "stablehlo.sine");
        assert_eq!((starts.len(), done.len()), (2, 2), "{found:?}");
        assert!(starts[0] < backward[0] && backward[0] < starts[1], "{found:?}");
        assert!(starts.iter().all(|start| *start < done[0]), "{found:?}");
    }

    #[test]
    fn gradients_share_a_bucket_up_to_its_size() {
        let found = operations("sgd,lr=0.1", 32);
        assert_eq!((places(&found, REDUCE_START).len(), places(&found, REDUCE_DONE).len()), (1, 1));
        let found = operations("sgd,lr=0.1,accumulate=2", 32);
        assert_eq!(places(&found, REDUCE_START).len(), 1);
    }
}
