//! The program itself, driven from outside.

mod bad_input;
mod benchmark;
mod history;
mod interrupt;
mod shell;
mod warpt;
