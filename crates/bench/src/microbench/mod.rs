//! Quantized linear layers and blocks, measured for speed, accuracy and what bounds them: `warpt microbench`.
//!
//! [`config`] reads the YAML file of torchao's runner, [`shapes`] makes its matrix shapes, `model` and `training` write its models, [`run`]
//! measures a row for each recipe and shape, [`csv`] and [`record`] keep the rows, [`timeline`] is the memory of a run.

pub mod config;
pub mod csv;
mod model;
mod noise;
pub mod record;
pub mod run;
pub mod shapes;
pub mod timeline;
mod times;
mod training;
pub mod yaml;
