//! The program itself, driven from outside.

mod bad_input;
mod benchmark;
mod bytecode;
mod compare;
mod golden;
mod history;
mod import;
mod interrupt;
mod kernels;
mod list;
mod model;
mod monitor;
mod pretend;
mod run;
mod shell;
mod validate;
mod values;
mod warpt;
mod xla;
