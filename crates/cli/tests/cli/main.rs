//! The program itself, driven from outside.

mod benchmark;
mod bad_input;
mod history;
mod interrupt;
mod shell;
mod warpt;
