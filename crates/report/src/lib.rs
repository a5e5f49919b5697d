//! Results rendered for people and for other tools: Markdown, JUnit, terminal tables and plots.

#![forbid(unsafe_code)]
