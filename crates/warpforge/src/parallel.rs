//! Training by several ranks: the custom calls by which a step averages its gradients.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use warpforge_collective::{Buffer, Communicator, Pending};
use warpforge_interp::{CustomCall, Value};
use warpforge_ir::OpRef;
use warpforge_runtime::{CustomCalls, DeviceReduction};
use warpforge_tensor::{ElementType, Scalar, Tensor};
use warpforge_train::{REDUCE_DONE, REDUCE_START};

use crate::RankGroup;

/// A size of buckets that suits most models: large enough for the network, small enough that several are under way.
pub const BUCKET_BYTES: usize = 25 << 20;

/// Gradients on their way.
struct Bucket {
    own: Vec<Tensor>,
    /// Whether they are to be averaged; gradients that are not complete stay.
    complete: bool,
    averaged: Option<Pending<Buffer>>,
}

#[derive(Default)]
struct Buckets {
    started: i64,
    pending: HashMap<i64, Bucket>,
    /// Complete buckets that wait for those before them, by their numbers in the run.
    held: BTreeMap<usize, i64>,
    /// The number of the bucket that is sent next.
    next: usize,
}

/// The calls of a step.
pub(crate) fn calls(group: &RankGroup) -> CustomCalls {
    let Some((device, on_device)) = group.on_device() else { return calls_of_host(group.shared()) };
    // A host among devices would wait for ranks that never come.
    let said = format!("the ranks are connected on {device}; compile the step for it");
    let refuse: Arc<dyn CustomCall> = Arc::new(move |_: OpRef<'_>, _: &[Value]| Err(said.clone()));
    let calls = [REDUCE_START, REDUCE_DONE].map(|target| (target.to_owned(), Arc::clone(&refuse)));
    CustomCalls::new(calls.into()).with_reduction(DeviceReduction {
        start: REDUCE_START,
        done: REDUCE_DONE,
        group: Arc::clone(on_device),
    })
}

/// The calls of ranks whose gradients cross their hosts.
fn calls_of_host(group: &Arc<Communicator>) -> CustomCalls {
    let buckets = Arc::new(Mutex::new(Buckets::default()));
    let (group, shared) = (Arc::clone(group), Arc::clone(&buckets));
    let start = move |op: OpRef<'_>, operands: &[Value]| start(&group, &shared, op, operands);
    let done = move |_: OpRef<'_>, operands: &[Value]| done(&buckets, operands);
    let calls: [(&str, Arc<dyn CustomCall>); 2] =
        [(REDUCE_START, Arc::new(start)), (REDUCE_DONE, Arc::new(done))];
    CustomCalls::new(calls.map(|(target, call)| (target.to_owned(), call)).into())
}

#[allow(clippy::needless_pass_by_value, reason = "what `map_err` takes")]
fn text(error: impl ToString) -> String {
    error.to_string()
}

/// Which of how many buckets of a run a call starts.
fn place(op: OpRef<'_>) -> Option<(usize, usize)> {
    let (number, count) = op.attr_str("backend_config")?.split_once('/')?;
    let (number, count) = (number.parse().ok()?, count.parse().ok()?);
    (number < count).then_some((number, count))
}

fn start(
    group: &Communicator,
    buckets: &Mutex<Buckets>,
    op: OpRef<'_>,
    operands: &[Value],
) -> Result<Vec<Value>, String> {
    let (number, count) = place(op).ok_or("the call does not say which bucket it starts")?;
    let mut own = Vec::new();
    for operand in operands {
        own.push(operand.as_tensor().map_err(text)?.clone());
    }
    let conditional = own.first().is_some_and(|first| first.element_type() == ElementType::Bool);
    let complete = !conditional || own.remove(0).get(0) == Scalar::Bool(true);
    let mut buckets = buckets.lock().unwrap_or_else(PoisonError::into_inner);
    buckets.started += 1;
    let ticket = buckets.started;
    buckets.pending.insert(ticket, Bucket { own, complete, averaged: None });
    if complete {
        buckets.held.insert(number, ticket);
    }
    // Engines may make the calls in different orders; all ranks send in one.
    loop {
        let next = buckets.next;
        let Some(ticket) = buckets.held.remove(&next) else { break };
        if let Some(bucket) = buckets.pending.get_mut(&ticket) {
            bucket.averaged = Some(group.mean(gather(&bucket.own)?));
        }
        buckets.next = (next + 1) % count;
    }
    Ok(vec![Value::Tensor(Tensor::from_slice(&[], &[ticket]).map_err(text)?)])
}

fn done(buckets: &Mutex<Buckets>, operands: &[Value]) -> Result<Vec<Value>, String> {
    let missing = || "there is no such all-reduce under way".to_owned();
    let ticket = operands.first().ok_or_else(missing)?.as_tensor().map_err(text)?;
    let ticket = ticket.as_slice::<i64>().map_err(text)?.first().copied().ok_or_else(missing)?;
    let bucket = buckets.lock().unwrap_or_else(PoisonError::into_inner).pending.remove(&ticket);
    let Bucket { own, complete, averaged } = bucket.ok_or_else(missing)?;
    let tensors = match averaged {
        Some(averaged) => scatter(&own, &averaged.wait().map_err(text)?)?,
        None if complete => return Err("a bucket before it was never started".to_owned()),
        None => own,
    };
    Ok(tensors.into_iter().map(Value::Tensor).collect())
}

/// All elements one after the other; types of fewer bits are averaged in single precision.
fn gather(tensors: &[Tensor]) -> Result<Buffer, String> {
    let element = tensors.first().map(Tensor::element_type);
    if element == Some(ElementType::F64) {
        let mut all = Vec::new();
        for tensor in tensors {
            all.extend_from_slice(tensor.as_slice::<f64>().map_err(text)?);
        }
        return Ok(Buffer::F64(all));
    }
    let mut all: Vec<f32> = Vec::with_capacity(tensors.iter().map(Tensor::len).sum());
    for tensor in tensors {
        match tensor.as_slice::<f32>() {
            Ok(values) => all.extend_from_slice(values),
            Err(_) => all.extend(tensor.iter().map(|value| value.to_f64() as f32)),
        }
    }
    Ok(Buffer::F32(all))
}

/// The elements as tensors like those that they are the averages of.
fn scatter(like: &[Tensor], averaged: &Buffer) -> Result<Vec<Tensor>, String> {
    let mut at = 0;
    let mut tensors = Vec::new();
    for tensor in like {
        let range = at..at + tensor.len();
        at = range.end;
        let cut = || "an all-reduce gave too few elements".to_owned();
        tensors.push(
            match averaged {
                Buffer::F32(values) => {
                    let values = values.get(range).ok_or_else(cut)?;
                    match tensor.element_type() {
                        ElementType::F32 => Tensor::from_slice(tensor.dims(), values),
                        element => {
                            let scalars = values.iter().map(|&value| Scalar::Float(f64::from(value)));
                            Tensor::from_scalars(element, tensor.shape().clone(), scalars)
                        }
                    }
                }
                Buffer::F64(values) => Tensor::from_slice(tensor.dims(), values.get(range).ok_or_else(cut)?),
            }
            .map_err(text)?,
        );
    }
    Ok(tensors)
}

#[cfg(test)]
mod tests {
    use warpforge_collective::World;

    use super::*;
    use crate::{CompileOptions, Inputs, Model, Tier};

    /// The gradient is the input.
    const MODEL: &str = r#"func.func @main(
        %w: tensor<3xELEMENT> {warpforge.name = "w", warpforge.role = "parameter"},
        %x: tensor<3xELEMENT> {warpforge.name = "x"})
        -> (tensor<3xELEMENT> {warpforge.name = "grad.w", warpforge.role = "gradient", warpforge.of = "w"}) {
      %0 = stablehlo.add %x, %x : tensor<3xELEMENT>
      %1 = stablehlo.subtract %0, %x : tensor<3xELEMENT>
      func.return %1 : tensor<3xELEMENT>
    }"#;

    /// Trains as one of several ranks on inputs that are its rank and its run, and gives the weights.
    fn train(group: &RankGroup, element: ElementType, recipe: &str, tier: Tier, runs: usize) -> Vec<f64> {
        let mut model = Model::from_text("m.mlir", MODEL.replace("ELEMENT", &element.to_string())).unwrap();
        let tensor = |value: f64| {
            let shape = warpforge_tensor::Shape::new([3]).unwrap();
            Tensor::from_scalars(element, shape, [Scalar::Float(value); 3]).unwrap()
        };
        model.bind_weights(&[("w".to_owned(), tensor(0.0))].into()).unwrap();
        let step = model.train_in_group(&recipe.parse().unwrap(), group, 1 << 20).unwrap();
        let options = CompileOptions { tier: Some(tier), ..CompileOptions::default() };
        let compiled = step.compile_with_state(&options, Inputs::new()).unwrap();
        for run in 0..runs {
            compiled.run([("x", tensor(group.communicator().rank() as f64 + 4.0 * run as f64))]).unwrap();
        }
        compiled.state().unwrap().read("w").unwrap().iter().map(Scalar::to_f64).collect()
    }

    #[test]
    fn every_rank_makes_the_update_of_the_mean_gradient() {
        let (first, others) = World::parent(3).unwrap();
        let of = |variables: Vec<(&'static str, String)>| {
            World::from_variables(&|name| {
                variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone())
            })
        };
        let worlds = std::iter::once(first).chain(others.into_iter().map(|one| of(one).unwrap().unwrap()));
        let rank = |world: World| {
            let group = RankGroup::on_hosts(Arc::new(Communicator::open(world, Arc::new(|_| {})).unwrap()));
            for element in [ElementType::F32, ElementType::F64, ElementType::BF16] {
                for tier in [Tier::Production, Tier::Correctness] {
                    // Ranks 0, 1 and 2 have the mean 1, and 5 in the second run.
                    assert_eq!(train(&group, element, "sgd,lr=1", tier, 2), [-6.0; 3]);
                    assert_eq!(train(&group, element, "sgd,lr=1,accumulate=2", tier, 2), [-3.0; 3]);
                }
            }
            group.finish().unwrap();
        };
        let threads: Vec<_> = worlds.map(|world| std::thread::spawn(move || rank(world))).collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    }
}
