//! Quantized linear layers and blocks, measured for speed, accuracy and what bounds them: `warpt microbench`.
//!
//! [`config`] reads the YAML file of torchao's runner, [`shapes`] makes its matrix shapes, `model` writes its models as a `graph`, which
//! `gradient` differentiates, and whose linear layers compute as `layers` and `format` say. [`run`] measures a row for each recipe and
//! shape, by `inference` or `training`; [`bounds`] says what limits it. [`csv`] and [`record`] keep the rows, [`timeline`] is the memory of
//! a run.

pub mod bounds;
pub mod config;
pub mod csv;
pub mod format;
mod gradient;
mod graph;
mod inference;
mod layers;
mod model;
mod noise;
mod power;
mod recipe;
pub mod record;
pub mod row;
pub mod run;
pub mod shapes;
pub mod timeline;
mod times;
mod training;
pub mod yaml;
