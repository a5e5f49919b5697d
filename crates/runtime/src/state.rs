//! State: values that programs read and update in place, from one run to the next.
//!
//! A parameter that is trained, an optimizer's moment, a running statistic and a cache are state. A [`State`] holds them where
//! the programs of one backend compute; a [`Program`](crate::Program) that is bound to it takes the other arguments and gives
//! the other results.

use std::any::Any;
use std::sync::{Mutex, MutexGuard, PoisonError};

use warpforge_tensor::Tensor;

use crate::InputType;
use crate::error::{ErrorKind, Result};

/// Where the values of a state lie.
pub trait Store: Send + Sync {
    /// A value, brought to the host.
    ///
    /// # Errors
    ///
    /// When the device fails.
    fn read(&self, value: usize) -> Result<Tensor>;

    /// Gives a value another content of the same type.
    ///
    /// # Errors
    ///
    /// When the device fails.
    fn write(&self, value: usize, content: &Tensor) -> Result<()>;

    /// The store as its own type, for the backend that made it.
    fn as_any(&self) -> &dyn Any;
}

/// Values that programs read and update.
pub struct State {
    types: Vec<InputType>,
    store: Box<dyn Store>,
    /// Whether all values are of the same time: false during a run, and after one that failed.
    whole: Mutex<bool>,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State").field("types", &self.types).finish_non_exhaustive()
    }
}

impl State {
    /// The state that a store holds; its values are of these types.
    #[must_use]
    pub fn new(store: Box<dyn Store>, types: Vec<InputType>) -> Self {
        Self { types, store, whole: Mutex::new(true) }
    }

    /// State in the memory of the host.
    #[must_use]
    pub fn on_host(values: &[Tensor]) -> Self {
        let types = values.iter().map(InputType::of).collect();
        Self::new(Box::new(HostStore { values: Mutex::new(values.to_vec()) }), types)
    }

    /// The types of the values.
    #[must_use]
    pub fn types(&self) -> &[InputType] {
        &self.types
    }

    /// The store, for the backend that made it.
    #[must_use]
    pub fn store(&self) -> &dyn Store {
        self.store.as_ref()
    }

    /// A value, brought to the host.
    ///
    /// # Errors
    ///
    /// When a run failed half-way, or the device fails.
    pub fn read(&self, value: usize) -> Result<Tensor> {
        let _whole = self.lock()?;
        self.store.read(value)
    }

    /// Gives one value another content.
    ///
    /// # Errors
    ///
    /// When it is of another type, a run failed half-way, or the device fails.
    pub fn write(&self, value: usize, content: &Tensor) -> Result<()> {
        self.check(value, content)?;
        let _whole = self.lock()?;
        self.store.write(value, content)
    }

    /// Gives all values other contents, also after a run that failed half-way.
    ///
    /// # Errors
    ///
    /// When one is of another type, or the device fails.
    pub fn replace(&self, contents: &[Tensor]) -> Result<()> {
        if contents.len() != self.types.len() {
            let problem = format!("{} values where there are {}", contents.len(), self.types.len());
            return Err(ErrorKind::State(problem).into());
        }
        for (value, content) in contents.iter().enumerate() {
            self.check(value, content)?;
        }
        let mut whole = self.whole.lock().unwrap_or_else(PoisonError::into_inner);
        *whole = false;
        for (value, content) in contents.iter().enumerate() {
            self.store.write(value, content)?;
        }
        *whole = true;
        Ok(())
    }

    /// Begins a run that updates the state. Until it ends nobody else reads, writes or runs.
    ///
    /// # Errors
    ///
    /// When a run failed half-way.
    pub fn begin(&self) -> Result<Update<'_>> {
        let mut whole = self.lock()?;
        *whole = false;
        Ok(Update { state: self, whole })
    }

    fn lock(&self) -> Result<MutexGuard<'_, bool>> {
        let whole = self.whole.lock().unwrap_or_else(PoisonError::into_inner);
        if *whole {
            return Ok(whole);
        }
        let problem = "a run failed half-way and left it partly updated; load it again, or start anew";
        Err(ErrorKind::State(problem.to_owned()).into())
    }

    fn check(&self, value: usize, content: &Tensor) -> Result<()> {
        let found = InputType::of(content);
        match self.types.get(value) {
            Some(expected) if *expected == found => Ok(()),
            Some(expected) => {
                let problem = format!("value {value} is {expected}, the new content {found}");
                Err(ErrorKind::State(problem).into())
            }
            None => {
                Err(ErrorKind::State(format!("there is no value {value} of {}", self.types.len())).into())
            }
        }
    }
}

/// A run that updates a state. Where it does not end, the state is not whole.
#[must_use]
pub struct Update<'s> {
    state: &'s State,
    whole: MutexGuard<'s, bool>,
}

impl Update<'_> {
    /// The store.
    #[must_use]
    pub fn store(&self) -> &dyn Store {
        self.state.store()
    }

    /// The run has updated all values.
    pub fn end(mut self) {
        *self.whole = true;
    }
}

/// Values in the memory of the host.
pub struct HostStore {
    values: Mutex<Vec<Tensor>>,
}

impl HostStore {
    /// The values, for a run that updates them in place. A tensor that somebody has read shares its memory until it is written.
    pub fn lock(&self) -> MutexGuard<'_, Vec<Tensor>> {
        self.values.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for HostStore {
    fn read(&self, value: usize) -> Result<Tensor> {
        let missing = || ErrorKind::State(format!("there is no value {value}"));
        Ok(self.lock().get(value).cloned().ok_or_else(missing)?)
    }

    fn write(&self, value: usize, content: &Tensor) -> Result<()> {
        let missing = || ErrorKind::State(format!("there is no value {value}"));
        *self.lock().get_mut(value).ok_or_else(missing)? = content.clone();
        Ok(())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vector(values: [f32; 2]) -> Tensor {
        Tensor::from_slice(&[2], &values).unwrap()
    }

    #[test]
    fn values_are_replaced_by_those_of_their_type_alone() {
        let state = State::on_host(&[vector([1.0, 2.0])]);
        let read = state.read(0).unwrap();
        state.write(0, &vector([3.0, 4.0])).unwrap();
        assert_eq!(read.as_slice::<f32>().unwrap(), [1.0, 2.0]);
        assert_eq!(state.read(0).unwrap().as_slice::<f32>().unwrap(), [3.0, 4.0]);
        let wrong = state.write(0, &Tensor::from_slice(&[1], &[1i32]).unwrap()).unwrap_err().to_string();
        assert!(wrong.contains("value 0 is tensor<2xf32>, the new content tensor<1xi32>"), "{wrong}");
        assert!(state.write(1, &vector([0.0; 2])).is_err() && state.replace(&[]).is_err());
    }

    #[test]
    fn a_run_that_does_not_end_leaves_no_whole_state() {
        let state = State::on_host(&[vector([1.0, 2.0])]);
        state.begin().unwrap().end();
        drop(state.begin().unwrap());
        assert!(state.read(0).unwrap_err().to_string().contains("half-way"));
        assert!(state.begin().is_err() && state.write(0, &vector([0.0; 2])).is_err());
        state.replace(&[vector([5.0, 6.0])]).unwrap();
        assert_eq!(state.read(0).unwrap().as_slice::<f32>().unwrap(), [5.0, 6.0]);
    }
}
