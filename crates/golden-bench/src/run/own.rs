//! Steps on our own choice of boxes in the place of the recorded one.

use std::collections::BTreeMap;
use std::str::FromStr;

use warpforge::{CompileOptions, CompiledModel, Inputs, Model, ModelState, Tensor};

use crate::task::Task;
use crate::{Error, GoldenRun};

/// Where the boxes of a detector's training steps come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Selection {
    /// They are those of the golden run.
    #[default]
    Recorded,
    /// They are chosen by what the model itself makes of the batch.
    Own,
}

impl FromStr for Selection {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "recorded" => Ok(Self::Recorded),
            "own" => Ok(Self::Own),
            _ => Err("expected `recorded` or `own`".to_owned()),
        }
    }
}

/// The graph that choices are made by, which takes the trained weights as inputs.
pub(super) struct OwnChoice {
    first: CompiledModel,
    trained: Vec<String>,
}

impl OwnChoice {
    pub(super) fn new(
        golden: &GoldenRun,
        options: &CompileOptions,
        trained: &BTreeMap<String, Tensor>,
    ) -> Result<Self, Error> {
        let training = &golden.plan.training;
        if training.batch_size != training.eval_batch_size {
            let reason = "--selection own needs a golden run whose evaluation has batches of the same size";
            return Err(Error::golden(&golden.folder, reason));
        }
        let mut model = Model::load(golden.folder.join("eval.pt2"))?;
        let held: Vec<&str> = model.weights().map(|(name, _)| name).collect();
        let trained: Vec<String> =
            trained.keys().filter(|name| held.contains(&name.as_str())).cloned().collect();
        model.release_weights(|name| trained.iter().any(|trained| trained == name));
        Ok(Self { first: model.compile(options)?, trained })
    }

    /// Replaces what was recorded for a batch.
    pub(super) fn replace(
        &self,
        golden: &GoldenRun,
        task: &dyn Task,
        state: &ModelState,
        run: u64,
        batch: &mut Inputs,
    ) -> Result<(), Error> {
        let missing = || Error::Stopped("a batch without images has nothing to choose from".to_owned());
        let images = batch.get("images").cloned().ok_or_else(missing)?;
        let mut inputs: Inputs = [("images", images)].into();
        for name in &self.trained {
            inputs.insert(name.clone(), state.read(name)?);
        }
        let given = self.first.run(inputs)?;
        let indices = usize::try_from(run).ok().and_then(|run| golden.order.get(run));
        let indices = indices.map(Vec::as_slice).unwrap_or_default();
        // A run that goes on after it was stopped chooses as it would have.
        let seed = (u64::from(golden.plan.training.seed) << 32) ^ run;
        for (name, tensor) in task.choose(&given, indices, seed)?.iter() {
            batch.insert(name, tensor.clone());
        }
        Ok(())
    }
}
