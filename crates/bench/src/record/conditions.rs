//! What the machine was doing while a benchmark ran; the inventory, which watches it, owns the shape.

pub use warpforge_inventory::live::Conditions;
