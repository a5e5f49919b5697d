//! Products of bf16 and f16 from sm_90 on: tiles of 128 by 256 that the copy engine brings, multiplied by two groups of four
//! warps each while a thread of a third asks for the next ones.
//!
//! As many blocks as there are multiprocessors take tile after tile, so that the copies for the next tile are under way while
//! the last one is stored.

use warpforge_fusion::Graph;
use warpforge_fusion::cluster::{Cluster, Contraction};
use warpforge_tensor::ElementType;

use super::epilogue::Store;
use super::geometry::{Geometry, Side};
use super::tensor::{store_pair, tile_order};
use crate::draft::{Draft, Launch};
use crate::index::int;
use crate::kernel::{Emitted, Map, Unsupported};
use crate::options::Options;

/// Rows and columns of a tile, and elements that are summed at a time: a line of 128 bytes.
const ROWS: usize = 128;
const COLUMNS: usize = 256;
const DEPTH: usize = 64;

/// Tiles in shared memory.
const STAGES: usize = 4;

/// One group of four warps for copies, two for products.
const THREADS: usize = 384;

/// Blocks that run at once: the multiprocessors of the device that the architecture is known by.
const BLOCKS: usize = 132;

/// Rows of tiles that neighbouring blocks share.
const GROUP: usize = 16;

/// Least rows, columns and summed elements for which tiles are not mostly empty.
const LEAST: usize = 64;

/// Whether a product can be computed so: on such a device, from narrow operands that the copy engine can read.
pub(super) fn takes(geometry: &Geometry, options: &Options) -> bool {
    let Geometry { batch, m, n, k, lhs, rhs, .. } = geometry;
    options.architecture == "sm_90"
        && [m, n, k].into_iter().all(|&size| size >= LEAST)
        && batch.dims.len() <= 1
        && batch.strides.iter().flatten().all(|&stride| stride > 0 && stride % 8 == 0)
        && [lhs, rhs].into_iter().all(readable)
}

/// Whether the copy engine can read an operand: lines of neighbours that begin at multiples of 16 bytes.
fn readable(side: &Side) -> bool {
    let [inner, outer] = if side.column == 1 { [side.column, side.row] } else { [side.row, side.column] };
    side.element != ElementType::F32
        && inner == 1
        && outer > 1
        && outer % 8 == 0
        && side.offset >= 0
        && side.offset % 8 == 0
}

/// An operand as the copy engine brings it.
struct Copied {
    map: Map,
    /// Whether lines run along rows or columns instead of along the sums.
    turned: bool,
    /// Copies for a tile.
    boxes: usize,
    /// The name of the map, of the tiles, and of the first row or column.
    name: String,
    tiles: &'static str,
    first: &'static str,
}

impl Copied {
    fn new(draft: &mut Draft<'_>, geometry: &Geometry, view: usize) -> Self {
        let left = view == 0;
        let (side, size, across) =
            if left { (&geometry.lhs, geometry.m, ROWS) } else { (&geometry.rhs, geometry.n, COLUMNS) };
        let (along, deep) = if left { (side.row, side.column) } else { (side.column, side.row) };
        let turned = deep != 1;
        let (inner, lines, stride) =
            if turned { (size, geometry.k, deep) } else { (geometry.k, size, along) };
        let boxes = if turned { across / DEPTH } else { 1 };
        let apart = geometry.batch.strides[view].first().copied().unwrap_or(stride * lines as isize);
        let map = Map {
            value: side.value,
            offset: side.offset as u64 * 2,
            dims: [inner as u64, lines as u64, geometry.batches() as u64],
            strides: [stride as u64 * 2, apart as u64 * 2],
            lines: if turned { DEPTH } else { across } as u32,
        };
        let name = draft.map(map);
        let (tiles, first) = if left { ("left", "first") } else { ("right", "begin") };
        Self { map, turned, boxes, name, tiles, first }
    }

    fn bytes(&self) -> usize {
        self.boxes * self.map.lines as usize * DEPTH * 2
    }

    /// Lines that ask for the tile of a stage.
    fn ask(&self, draft: &mut Draft<'_>) {
        for at in 0..self.boxes {
            let Self { name, tiles, first, .. } = self;
            let (x, y) = if self.turned {
                (format!("{first} + {}", at * DEPTH), format!("j * {DEPTH}"))
            } else {
                (format!("j * {DEPTH}"), (*first).to_owned())
            };
            let to = format!("{tiles} + stage * {} + {}", self.bytes(), at * DEPTH * 128);
            draft.text.line(format!("wf_map_copy({to}, {name}, {x}, {y}, batch, full + stage);"));
        }
    }

    /// The matrix of a step `d` of the sums, from a place on.
    fn matrix(&self, from: &str) -> String {
        let step = if self.turned { 16 * 128 } else { 32 };
        format!("wf_matrix_at({from} + d * {step}, {})", DEPTH * 128)
    }
}

pub(super) fn emit(
    graph: &Graph,
    cluster: &Cluster,
    product: &Contraction,
    geometry: &Geometry,
    ty: &'static str,
    options: &Options,
) -> Result<Emitted, Unsupported> {
    let (m, n, k, batches) = (geometry.m, geometry.n, geometry.k, geometry.batches());
    let store = Store::new(product, cluster.output, n);
    let mut draft = Draft::new(graph, options);
    let index = int(geometry.reach.max(store.reach(&draft)));
    let (across, down, deep) = (n.div_ceil(COLUMNS), m.div_ceil(ROWS), k.div_ceil(DEPTH));
    let jobs = batches * across * down;
    let blocks = jobs.min(BLOCKS);
    let sides = [Copied::new(&mut draft, geometry, 0), Copied::new(&mut draft, geometry, 1)];
    let bytes = sides[0].bytes() + sides[1].bytes();
    draft.salt().begin(&mut draft.text);
    let text = &mut draft.text;
    text.line("WF_DYNAMIC_SHARED(room);");
    text.line("unsigned char* const left = wf_from_1024(room);");
    text.line(format!("unsigned char* const right = left + {};", STAGES * sides[0].bytes()));
    text.line(format!("unsigned long long* const full = (unsigned long long*)(left + {});", STAGES * bytes));
    text.line(format!("unsigned long long* const empty = full + {STAGES};"));
    text.line("const int part = WF_THREAD / 128, lane = WF_THREAD % 32;");
    text.open("if (WF_THREAD == 0)");
    text.open(format!("for (int at = 0; at < {STAGES}; ++at)"));
    text.line("wf_barrier_begin(full + at, 1);");
    text.line("wf_barrier_begin(empty + at, 2);");
    text.close();
    text.line("wf_barriers_begun();");
    text.close();
    text.line("wf_sync();");
    text.line("int stage = 0, phase = 0;");
    text.open("if (part == 0)");
    text.line("wf_fewer_registers<40>();");
    text.open("if (WF_THREAD == 0)");
    let each_job = |draft: &mut Draft<'_>| {
        let text = &mut draft.text;
        text.open(format!("for (int job = WF_BLOCK; job < {jobs}; job += {blocks})"));
        text.line(format!("const int batch = job / {};", across * down));
        tile_order(text, "job", [down, across], [ROWS, COLUMNS], GROUP);
    };
    let step = format!("if (++stage == {STAGES}) {{ stage = 0; phase ^= 1; }}");
    each_job(&mut draft);
    draft.text.open(format!("for (int j = 0; j < {deep}; ++j)"));
    draft.text.line("wf_barrier_wait(empty + stage, phase ^ 1);");
    draft.text.line(format!("wf_barrier_expect(full + stage, {bytes});"));
    sides.iter().for_each(|side| side.ask(&mut draft));
    draft.text.line(&step);
    for _ in 0..4 {
        draft.text.close();
    }
    draft.text.open("else");
    draft.text.line("wf_more_registers<232>();");
    each_job(&mut draft);
    draft.text.line("float sums[128] = {};");
    draft.text.line("int before = -1;");
    draft.text.open(format!("for (int j = 0; j < {deep}; ++j)"));
    let text = &mut draft.text;
    text.line("wf_barrier_wait(full + stage, phase);");
    text.line(format!(
        "const unsigned char* const l = left + stage * {} + (part - 1) * {};",
        sides[0].bytes(),
        64 * 128
    ));
    text.line(format!("const unsigned char* const r = right + stage * {};", sides[1].bytes()));
    text.line("wf_products_begin();");
    text.unrolled("d", DEPTH / 16);
    let turned = sides.each_ref().map(|side| i32::from(side.turned));
    let [a, b] = [sides[0].matrix("l"), sides[1].matrix("r")];
    text.line(format!("wf_product<{}, {}>(sums, {a}, {b}, ({ty}*)0);", turned[0], turned[1]));
    text.close();
    text.line("wf_products_end();");
    // The products of the step before are done: its tiles may be overwritten.
    text.open("if (before >= 0)");
    text.line("wf_products_wait<1>();");
    text.line("if (WF_THREAD % 128 == 0) wf_barrier_arrive(empty + before);");
    text.close();
    text.line("before = stage;");
    text.line(&step);
    text.close();
    text.line("wf_products_wait<0>();");
    text.line("if (WF_THREAD % 128 == 0) wf_barrier_arrive(empty + before);");
    text.unrolled("h", 2);
    text.line("const int own = first + (part - 1) * 64 + WF_THREAD / 32 % 4 * 16 + lane / 4 + h * 8;");
    text.open(format!("if (own < {m})"));
    text.line(format!("const {index} row = ({index})batch * {m} + own;"));
    store.row(&mut draft, "row", index);
    draft.text.unrolled("c", COLUMNS / 8);
    draft.text.line("const int pair = begin + c * 8 + lane % 4 * 2;");
    store_pair(&mut draft, &store, n, "sums[c * 4 + h * 2 + e]", index)?;
    for _ in 0..5 {
        draft.text.close();
    }
    draft.salt().end(&mut draft.text);
    let mut launch = Launch::new(blocks, THREADS);
    // Room for the barriers, and to begin at a multiple of 1024.
    launch.shared = STAGES * bytes + STAGES * 16 + 1024;
    launch.resident = 1;
    let title = format!("product {batches}x{m}x{n}x{k} by groups of warps");
    let kernel = draft.finish("dot", title, &launch, cluster.cost(graph))?;
    Ok(Emitted { kernels: vec![kernel], scratch: Vec::new() })
}
