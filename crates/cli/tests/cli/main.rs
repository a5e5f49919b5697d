//! The program itself, driven from outside.

mod bad_input;
mod benchmark;
mod beside;
mod bytecode;
mod compare;
mod dashboard;
mod golden;
mod history;
mod ignored;
mod import;
mod interrupt;
mod kernels;
mod list;
mod model;
mod monitor;
mod outputs;
mod pipes;
mod plan;
mod run;
mod shell;
mod sweep;
mod terminal;
mod timing;
mod validate;
mod warpt;
mod width;
