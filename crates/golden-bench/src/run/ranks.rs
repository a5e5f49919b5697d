//! This process among the ranks of a run: which part of each batch it has, and what it shares with the others.

use warpforge::{BUCKET_BYTES, Inputs, Model, ModelState, RankGroup, Recipe, Tensor};
use warpforge_collective::{Buffer, Communicator};

use crate::golden::RANK_ARCHIVE;
use crate::task::Task;
use crate::{Error, GoldenRun};

/// What rank 0 tells the others before the first step: the golden run, the step, and whether there is a checkpoint.
const HEAD: usize = 64 + 8 + 1;

pub(super) struct Ranks {
    group: Option<RankGroup>,
    /// Parts of a batch that this rank computes one after the other.
    pieces: usize,
}

impl Ranks {
    /// Refuses a number of ranks that the golden run has no graph for.
    pub(super) fn new(golden: &GoldenRun, group: Option<RankGroup>) -> Result<Self, Error> {
        // One rank has whole batches, whatever they were recorded by.
        let size = group.as_ref().map_or(1, |group| group.communicator().size());
        if size == 1 {
            return Ok(Self { group, pieces: 1 });
        }
        let recorded = golden.plan.training.ranks;
        if !recorded.is_multiple_of(size) {
            return Err(Error::golden(
                &golden.folder,
                format!(
                    "it was recorded with --ranks {recorded}, whose parts of a batch {size} ranks cannot share; record it with --ranks {size}"
                ),
            ));
        }
        Ok(Self { group, pieces: recorded / size })
    }

    /// This rank, from 0.
    pub(super) fn rank(&self) -> usize {
        self.group.as_ref().map_or(0, |group| group.communicator().rank())
    }

    /// How many there are.
    pub(super) fn size(&self) -> usize {
        self.group.as_ref().map_or(1, |group| group.communicator().size())
    }

    /// What they say to each other beside gradients.
    fn communicator(&self) -> Option<&Communicator> {
        self.group.as_ref().map(RankGroup::communicator)
    }

    /// How gradients travel.
    pub(super) fn engine(&self) -> Option<&'static str> {
        self.group.as_ref().map(RankGroup::engine)
    }

    /// Whether this is the rank that writes, looks and judges.
    pub(super) fn is_first(&self) -> bool {
        self.rank() == 0
    }

    /// Runs of one micro-batch.
    pub(super) fn pieces(&self) -> usize {
        self.pieces
    }

    /// The model that a rank trains, given that of the whole batch.
    pub(super) fn model(&self, golden: &GoldenRun, whole: &Model) -> Result<Model, Error> {
        match self.size() {
            1 => Ok(whole.clone()),
            _ => Ok(Model::load(golden.folder.join(RANK_ARCHIVE))?),
        }
    }

    /// The model as a step of this rank.
    pub(super) fn train(&self, model: &Model, recipe: &Recipe) -> Result<Model, Error> {
        Ok(match &self.group {
            Some(group) => model.train_in_group(recipe, group, BUCKET_BYTES)?,
            None => model.train(recipe)?,
        })
    }

    /// A part of this rank's part of a batch.
    pub(super) fn batch(
        &self,
        golden: &GoldenRun,
        task: &dyn Task,
        run: u64,
        piece: usize,
    ) -> Result<Inputs, Error> {
        golden.part(task, run, self.rank() * self.pieces + piece, self.size() * self.pieces)
    }

    /// The mean of a number over all ranks.
    pub(super) fn mean(&self, number: f64) -> Result<f64, Error> {
        let Some(group) = self.communicator() else { return Ok(number) };
        match group.mean(Buffer::F64(vec![number])).wait()? {
            Buffer::F64(mean) => Ok(mean.first().copied().unwrap_or(number)),
            Buffer::F32(_) => Ok(number),
        }
    }

    /// Starts all ranks where rank 0 does: the step, and the state of its checkpoint.
    pub(super) fn start(
        &self,
        golden: &GoldenRun,
        step: u64,
        resumed: bool,
        states: &[&ModelState],
    ) -> Result<u64, Error> {
        let Some(group) = self.communicator() else { return Ok(step) };
        let mut head = vec![0; HEAD];
        let (identity, rest) = head.split_at_mut(64);
        let own = golden.identity.as_bytes();
        identity.iter_mut().zip(own).for_each(|(to, from)| *to = *from);
        rest[..8].copy_from_slice(&step.to_le_bytes());
        rest[8] = u8::from(resumed);
        let head = group.broadcast(head, 0)?;
        if !head.starts_with(own) {
            let reason = "rank 0 has another golden run; give all ranks the same folder";
            return Err(Error::golden(&golden.folder, reason));
        }
        let mut number = [0; 8];
        number.copy_from_slice(&head[64..72]);
        if head[72] == 1 {
            for state in states {
                self.share(group, state)?;
            }
        }
        Ok(u64::from_le_bytes(number))
    }

    /// Gives all ranks the state of rank 0.
    fn share(&self, group: &Communicator, state: &ModelState) -> Result<(), Error> {
        for name in state.names().map(str::to_owned).collect::<Vec<_>>() {
            let tensor = state.read(&name)?;
            let bytes = group.broadcast(tensor.bytes().to_vec(), 0)?;
            if !self.is_first() {
                let shared = Tensor::from_bytes(tensor.element_type(), tensor.shape().clone(), &bytes)?;
                state.write(&name, &shared)?;
            }
        }
        Ok(())
    }

    /// An error of a step, or the loss of another rank that is behind it.
    pub(super) fn cause(&self, error: warpforge::Error) -> Error {
        let failure = self.communicator().and_then(Communicator::failure);
        failure.map_or(Error::Model(error), Error::Group)
    }

    /// Ends the group in peace.
    pub(super) fn finish(&self) -> Result<(), Error> {
        match &self.group {
            Some(group) => group.finish().map_err(|error| self.cause(error)),
            None => Ok(()),
        }
    }
}
