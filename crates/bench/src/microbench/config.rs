//! What a file asks for.

use warpforge::ElementType;

pub use super::recipe::Entry;
use super::shapes::{GENERATORS, Generator, MOST_POWER, MatrixShape};
use super::yaml::{Node, Value, YamlError, parse};
use crate::selection::nearest;

/// The mode of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// A forward pass with constant weights.
    Inference,
    /// A forward and a backward pass, each by itself.
    Training,
}

/// A model of a file.
#[derive(Debug, Clone)]
pub struct ModelParams {
    /// Its name.
    pub name: String,
    /// The shapes.
    pub shapes: Vec<MatrixShape>,
    /// The type without quantization.
    pub dtype: ElementType,
    /// As the file has it: `torch.bfloat16`.
    pub dtype_name: String,
    /// Whether the original would compile; kept for the table.
    pub compile: bool,
    /// How.
    pub compile_mode: String,
    /// `cpu`, `cuda`, `hip`, `xpu` or `mps`.
    pub device: String,
    /// `linear`, `ln_linear_…` or `transformer_block`.
    pub model_type: String,
    /// Whether a trace is asked for.
    pub enable_profiler: bool,
    /// Whether a memory timeline is asked for.
    pub enable_memory_profiler: bool,
}

/// A file.
#[derive(Debug, Clone)]
pub struct Config {
    /// The mode.
    pub mode: Mode,
    /// The recipes, in order.
    pub recipes: Vec<Entry>,
    /// Sparsity that is asked for, which this engine has not.
    pub sparsity: Vec<String>,
    /// The folder for results.
    pub output_dir: String,
    /// `scaling_type_input`, `…_weight`, `…_grad_output`, `scaling_granularity`, `use_fast_accum`, as the file has them.
    pub scaling: [String; 5],
    /// Runs of a measurement.
    pub repeat: Option<usize>,
    /// The models.
    pub models: Vec<ModelParams>,
}

const SPARSITY: &str = "sparsity_config_recipe_names";
const TOP: [&str; 11] = [
    "benchmark_mode",
    "quantization_config_recipe_names",
    SPARSITY,
    "output_dir",
    "scaling_type_input",
    "scaling_type_weight",
    "scaling_type_grad_output",
    "scaling_granularity",
    "use_fast_accum",
    "repeat_n",
    "model_params",
];
const MODEL: [&str; 10] = [
    "name",
    "matrix_shapes",
    "high_precision_dtype",
    "compile",
    "use_torch_compile",
    "torch_compile_mode",
    "device",
    "model_type",
    "enable_profiler",
    "enable_memory_profiler",
];
/// The models.
pub const MODELS: [&str; 9] = [
    "linear",
    "ln_linear_sigmoid",
    "ln_linear_relu",
    "ln_linear_leakyrelu",
    "ln_linear_relu6",
    "ln_linear_gelu",
    "ln_linear_silu",
    "ln_linear_hardswish",
    "transformer_block",
];
const DEVICES: [&str; 5] = ["cpu", "cuda", "hip", "xpu", "mps"];
/// The largest size of a matrix.
const MOST_SIZE: usize = 1 << MOST_POWER;
/// The most shapes of a file: eight sweeps as long as the original's.
const MOST_SHAPES: u64 = 4096;

type Result<T> = std::result::Result<T, YamlError>;

/// Reads a file.
///
/// # Errors
///
/// When it is no YAML, or has a key, a value or a name that is none: the line, and the nearest name.
pub fn read(text: &str) -> Result<Config> {
    let top = parse(text)?;
    let map = Map::new(&top, &TOP, "key")?;
    let mode = match map.text("benchmark_mode")?.as_deref() {
        None | Some("inference") => Mode::Inference,
        Some("training") => Mode::Training,
        Some(other) => {
            return Err(unknown(
                map.line("benchmark_mode"),
                "benchmark mode",
                other,
                &["inference", "training"],
            ));
        }
    };
    let mut recipes = Vec::new();
    for (line, name) in map.texts("quantization_config_recipe_names")? {
        let entry = Entry::read(line, &name)?;
        if !recipes.contains(&entry) {
            recipes.push(entry);
        }
    }
    if !recipes.contains(&Entry::Baseline) {
        recipes.insert(0, Entry::Baseline);
    }
    recipes.sort_by_key(|entry| *entry != Entry::Baseline);
    let mut sparsity = Vec::new();
    for (line, name) in map.texts(SPARSITY)? {
        match name.as_str() {
            "None" | "none" | "" => {}
            "semi-sparse" | "2:4" | "block" | "semi" => sparsity.push(name),
            _ => return Err(unknown(line, "sparsity", &name, &["semi-sparse", "2:4", "block", "none"])),
        }
    }
    let one_of = |key: &str, usual: &str, names: &[&str]| -> Result<String> {
        match map.text(key)? {
            None => Ok(usual.to_owned()),
            Some(text) if names.contains(&text.as_str()) => Ok(text),
            Some(text) => Err(unknown(map.line(key), key, &text, names)),
        }
    };
    let kinds = ["dynamic", "disabled"];
    let scaling = [
        one_of("scaling_type_input", "dynamic", &kinds)?,
        one_of("scaling_type_weight", "dynamic", &kinds)?,
        one_of("scaling_type_grad_output", "dynamic", &kinds)?,
        one_of("scaling_granularity", "tensorwise", &["tensorwise", "rowwise", "columnwise", "axiswise"])?,
        map.flag("use_fast_accum", true)?.to_string(),
    ];
    let repeat = match map.text("repeat_n")? {
        None => None,
        Some(text) => Some(number(map.line("repeat_n"), &text, 1_000_000)?),
    };
    let params =
        map.get("model_params").ok_or_else(|| YamlError::new(top.line, "`model_params` is missing"))?;
    let mut left = MOST_SHAPES;
    let models = match &params.value {
        Value::List(list) => list.iter().map(|node| model(node, &mut left)).collect::<Result<Vec<_>>>()?,
        _ => vec![model(params, &mut left)?],
    };
    let output_dir =
        map.text("output_dir")?.unwrap_or_else(|| "benchmarks/microbenchmarks/results".to_owned());
    Ok(Config { mode, recipes, sparsity, output_dir, scaling, repeat, models })
}

fn model(node: &Node, left: &mut u64) -> Result<ModelParams> {
    let map = Map::new(node, &MODEL, "key of model_params")?;
    let dtype_name = map.text("high_precision_dtype")?.unwrap_or_else(|| "torch.bfloat16".to_owned());
    let dtype = match dtype_name.trim_start_matches("torch.") {
        "bfloat16" => ElementType::BF16,
        "float16" | "half" => ElementType::F16,
        "float32" | "float" => ElementType::F32,
        other => {
            return Err(unknown(
                map.line("high_precision_dtype"),
                "dtype",
                other,
                &["bfloat16", "float16", "float32"],
            ));
        }
    };
    let modes = ["default", "max-autotune", "reduce-overhead", "false", "False"];
    let compile_mode = match map.text("compile")?.or(map.text("torch_compile_mode")?) {
        None => "default".to_owned(),
        Some(mode) if modes.contains(&mode.as_str()) => mode,
        Some(mode) => {
            let key = if map.text("compile")?.is_some() { "compile" } else { "torch_compile_mode" };
            return Err(unknown(map.line(key), "compile mode", &mode, &modes[..4]));
        }
    };
    let compile = map.flag("use_torch_compile", true)? && !compile_mode.eq_ignore_ascii_case("false");
    let checked = |key: &str, kind: &str, usual: &str, names: &[&str]| -> Result<String> {
        let text = map.text(key)?.unwrap_or_else(|| usual.to_owned());
        match names.contains(&text.as_str()) {
            true => Ok(text),
            false => Err(unknown(map.line(key), kind, &text, names)),
        }
    };
    let generators = match map.get("matrix_shapes") {
        None => vec![Generator::Custom(vec![[1024; 3]])],
        Some(Node { value: Value::List(list), .. }) => list.iter().map(generator).collect::<Result<_>>()?,
        Some(other) => return Err(YamlError::new(other.line, "`matrix_shapes` is a list")),
    };
    let model_type = checked("model_type", "model type", "linear", &MODELS)?;
    for generator in &generators {
        let rest = left.checked_sub(generator.count());
        let line = map.line("matrix_shapes");
        *left = rest.ok_or_else(|| {
            YamlError::new(line, format!("more than {MOST_SHAPES} shapes: make the range of powers smaller"))
        })?;
    }
    let shapes: Vec<MatrixShape> = generators.iter().flat_map(Generator::shapes).collect();
    if let Some(odd) = shapes.iter().find(|shape| model_type == "transformer_block" && shape.k % 8 != 0) {
        return Err(YamlError::new(
            node.line,
            format!("a transformer_block has 8 heads, which do not divide k = {}", odd.k),
        ));
    }
    Ok(ModelParams {
        name: map.text("name")?.unwrap_or_else(|| "benchmark".to_owned()),
        shapes,
        dtype,
        dtype_name,
        compile,
        compile_mode,
        device: checked("device", "device", "cpu", &DEVICES)?,
        model_type,
        enable_profiler: map.flag("enable_profiler", false)?,
        enable_memory_profiler: map.flag("enable_memory_profiler", false)?,
    })
}

fn generator(node: &Node) -> Result<Generator> {
    let map = Map::new(node, &["name", "shapes", "min_power", "max_power"], "key of matrix_shapes")?;
    let name = map.text("name")?.unwrap_or_else(|| "custom".to_owned());
    let power = |key: &str, usual: u32| -> Result<u32> {
        match map.text(key)? {
            None => Ok(usual),
            Some(text) => number(map.line(key), &text, MOST_POWER as usize).map(|power| power as u32),
        }
    };
    let powers = |low: u32, high: u32| -> Result<(u32, u32)> {
        let (low, high) = (power("min_power", low)?, power("max_power", high)?);
        match low <= high {
            true => Ok((low, high)),
            false => Err(YamlError::new(node.line, format!("min_power {low} is above max_power {high}"))),
        }
    };
    Ok(match name.as_str() {
        "custom" => {
            let Some(Node { value: Value::List(list), .. }) = map.get("shapes") else {
                return Err(YamlError::new(node.line, "`custom` needs `shapes`, a list of [m, k, n]"));
            };
            let shape = |node: &Node| -> Result<[usize; 3]> {
                let Value::List(sizes) = &node.value else {
                    return Err(YamlError::new(node.line, "a shape is [m, k, n]"));
                };
                let sizes: Vec<usize> = sizes
                    .iter()
                    .map(|size| number(size.line, scalar(size)?, MOST_SIZE))
                    .collect::<Result<_>>()?;
                sizes.try_into().map_err(|_| YamlError::new(node.line, "a shape has three sizes: [m, k, n]"))
            };
            Generator::Custom(list.iter().map(shape).collect::<Result<_>>()?)
        }
        "llama" => Generator::Llama,
        "pow2" => powers(10, 14).map(|(low, high)| Generator::Pow2(low, high))?,
        "pow2_extended" => powers(10, 14).map(|(low, high)| Generator::Pow2Extended(low, high))?,
        "sweep" => powers(8, 15).map(|(low, high)| Generator::Sweep(low, high))?,
        other => return Err(unknown(map.line("name"), "shape generator", other, &GENERATORS)),
    })
}

pub(super) fn unknown(line: usize, kind: &str, name: &str, known: &[&str]) -> YamlError {
    let guess = nearest(name, known.iter().copied()).map(|near| format!("; did you mean `{near}`?"));
    let list = format!("; there are {}", known.join(", "));
    YamlError::new(line, format!("unknown {kind} `{name}`{}", guess.unwrap_or(list)))
}

fn number(line: usize, text: &str, most: usize) -> Result<usize> {
    let found = text.parse().ok().filter(|found| (1..=most).contains(found));
    found.ok_or_else(|| YamlError::new(line, format!("`{text}` is not a whole number from 1 to {most}")))
}

fn scalar(node: &Node) -> Result<&str> {
    match &node.value {
        Value::Scalar { text, .. } => Ok(text),
        _ => Err(YamlError::new(node.line, "a single value is expected here")),
    }
}

/// A mapping with known keys.
struct Map<'n> {
    node: &'n Node,
    entries: &'n [(String, Node)],
}

impl<'n> Map<'n> {
    fn new(node: &'n Node, known: &[&str], kind: &str) -> Result<Self> {
        let Value::Map(entries) = &node.value else {
            return Err(YamlError::new(node.line, "keys with values are expected here"));
        };
        match entries.iter().find(|(key, _)| !known.contains(&key.as_str())) {
            Some((key, value)) => Err(unknown(value.line, kind, key, known)),
            None => Ok(Self { node, entries }),
        }
    }

    fn get(&self, key: &str) -> Option<&'n Node> {
        self.entries.iter().find(|(known, _)| known == key).map(|(_, node)| node)
    }

    fn line(&self, key: &str) -> usize {
        self.get(key).map_or(self.node.line, |node| node.line)
    }

    fn text(&self, key: &str) -> Result<Option<String>> {
        match self.get(key).map(scalar).transpose()? {
            None | Some("") => Ok(None),
            Some(text) => Ok(Some(text.to_owned())),
        }
    }

    fn texts(&self, key: &str) -> Result<Vec<(usize, String)>> {
        match self.get(key) {
            None => Ok(Vec::new()),
            Some(Node { value: Value::List(list), .. }) => {
                list.iter().map(|node| Ok((node.line, scalar(node)?.to_owned()))).collect()
            }
            Some(node) => Ok(vec![(node.line, scalar(node)?.to_owned())]),
        }
    }

    fn flag(&self, key: &str, usual: bool) -> Result<bool> {
        match self.text(key)?.as_deref() {
            None => Ok(usual),
            Some("true" | "True" | "TRUE") => Ok(true),
            Some("false" | "False" | "FALSE") => Ok(false),
            Some(text) => Err(YamlError::new(self.line(key), format!("`{text}` is neither true nor false"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "benchmark_mode: inference\nquantization_config_recipe_names:\n  - int8wo\n  - \"int4wo-64-hqq\"\nmodel_params:\n  \
                        matrix_shapes:\n    - name: custom\n      shapes: [[16, 64, 8]]\n  device: cpu\n";

    #[test]
    fn files_are_read_as_mappings_and_as_lists() {
        let config = read(FILE).unwrap();
        let names: Vec<String> = config.recipes.iter().map(Entry::name).collect();
        assert_eq!(names, ["baseline", "int8wo", "int4wo-64-hqq"]);
        assert_eq!((config.models.len(), config.models[0].shapes.len()), (1, 1));
        let listed = FILE
            .replace("  matrix_shapes", "  - matrix_shapes")
            .replace("    - name", "      - name")
            .replace("      shapes", "        shapes")
            .replace("  device", "    device");
        assert_eq!(read(&listed).unwrap().models[0].shapes, config.models[0].shapes);
    }

    #[test]
    fn mistakes_have_a_line_and_the_nearest_name() {
        for (from, to, line, part) in [
            ("int8wo", "int8w0", 3, "did you mean `int8wo`"),
            ("int4wo-64-hqq", "int4wo-63", 4, "multiple of 8"),
            ("custom", "costum", 7, "did you mean `custom`"),
            ("device: cpu", "devise: cpu", 9, "did you mean `device`"),
            ("device: cpu", "device: cuba", 9, "did you mean `cuda`"),
            ("device: cpu", "enable_profiler: maybe", 9, "neither true nor false"),
            ("[16, 64, 8]", "[16, 64]", 8, "three sizes"),
            ("[16, 64, 8]", "[16, -64, 8]", 8, "whole number"),
            ("inference", "interference", 1, "inference"),
            ("device: cpu", "torch_compile_mode: fast", 9, "unknown compile mode"),
            ("device: cpu", "compile: fast", 9, "unknown compile mode"),
            ("int8wo", "marlinade", 3, "did you mean `marlin`"),
        ] {
            let error = read(&FILE.replace(from, to)).unwrap_err();
            assert_eq!(error.line, line, "{to}: {error}");
            assert!(error.reason.contains(part), "{to}: {error}");
        }
        assert!(read("a: 1").is_err());
        let both = FILE.replace("device: cpu", "compile: default\n  torch_compile_mode: fast");
        assert!(read(&both).is_ok(), "`compile` goes before `torch_compile_mode`, as it did");
        assert_eq!(
            read(&FILE.replace("int8wo", "marlin")).unwrap().recipes[1],
            Entry::Missing("marlin".to_owned())
        );
    }

    #[test]
    fn few_lines_do_not_make_more_shapes_than_can_be_listed() {
        let sweep = |low: u32, high: u32| {
            FILE.replace(
                "name: custom\n      shapes: [[16, 64, 8]]",
                &format!("name: sweep\n      min_power: {low}\n      max_power: {high}"),
            )
        };
        assert_eq!(read(&sweep(8, 15)).unwrap().models[0].shapes.len(), 512);
        assert_eq!(read(&sweep(1, 16)).unwrap().models[0].shapes.len(), 4096);
        let error = read(&sweep(1, 24)).unwrap_err();
        assert!(error.line == 6 && error.reason.contains("more than 4096 shapes"), "{error}");
        // The bound is that of the file, not of a model.
        let two = sweep(1, 16)
            .replace("  device: cpu\n", "    - name: pow2\n      min_power: 1\n      max_power: 1\n");
        assert!(read(&two).unwrap_err().reason.contains("shapes"));
    }
}
