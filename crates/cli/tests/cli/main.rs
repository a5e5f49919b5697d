//! The program itself, driven from outside.

mod bad_input;
mod benchmark;
mod history;
mod interrupt;
mod list;
mod monitor;
mod shell;
mod warpt;
