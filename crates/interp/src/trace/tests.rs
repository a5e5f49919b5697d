//! Tests of traces.

use super::*;
use crate::{Interpreter, Options};
use warpforge_snakeburger::text;

const PROGRAM: &str = "func.func @main() -> tensor<2xf32> {
  %a = stablehlo.constant dense<[1.0, -1.0]> : tensor<2xf32>
  %b = stablehlo.sqrt %a : tensor<2xf32> loc(\"root\"(\"m.py\":7:0))
  %c = stablehlo.add %b, %b : tensor<2xf32>
  func.return %c : tensor<2xf32>
}
";

/// What a program left: the lines, the tensors and the outcome.
struct Traced {
    lines: Vec<serde_json::Value>,
    kept: Vec<String>,
    outcome: crate::Result<Vec<Value>>,
}

fn traced(program: &str, options: TraceOptions) -> Traced {
    let source = Source::new("a.mlir", program);
    let module = text::parse(&source, &text::Options { keep_locations: true }).expect("a valid module");
    let trace = Arc::new(Trace::new(Vec::new(), Some(source), options));
    let options = Options { observer: Some(trace.clone()), ..Options::default() };
    let outcome = Interpreter::new(&module, options).run("main", Vec::new());
    let kept = trace.finish().expect("memory").into_iter().map(|(name, _)| name).collect();
    let written = String::from_utf8(trace.state().out.clone()).expect("text");
    let lines = written.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    Traced { lines, kept, outcome }
}

#[test]
fn every_value_is_noted_with_its_place() {
    let Traced { lines, outcome, .. } = traced(PROGRAM, TraceOptions::default());
    assert!(outcome.is_ok());
    let field = |name: &str| lines.iter().map(|line| line[name].clone()).collect::<Vec<_>>();
    assert_eq!(field("line"), [2, 3, 4]);
    assert_eq!(field("op_index"), [0, 1, 2]);
    assert_eq!(field("nan"), [0, 1, 1]);
    assert_eq!(field("function"), ["main"; 3]);
    assert_eq!((&lines[1]["node"], &lines[1]["source"]), (&"root".into(), &"m.py:7".into()));
    assert!(lines[0]["node"].is_null());
}

#[test]
fn operations_in_regions_count_in_the_order_of_the_text() {
    let program = "func.func @main() -> tensor<i32> {
  %n = stablehlo.constant dense<3> : tensor<i32>
  %0 = stablehlo.while(%i = %n) : tensor<i32>
   cond {
    %z = stablehlo.constant dense<0> : tensor<i32>
    %c = stablehlo.compare GT, %i, %z : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %o = stablehlo.constant dense<1> : tensor<i32>
    %s = stablehlo.subtract %i, %o : tensor<i32>
    stablehlo.return %s : tensor<i32>
  }
  %1 = stablehlo.negate %0 : tensor<i32>
  func.return %1 : tensor<i32>
}";
    let keep = Some(Filter::new(["stablehlo.subtract".to_owned()]));
    let Traced { lines, kept, .. } = traced(program, TraceOptions { keep, break_on_nan: false });
    let places: Vec<(u64, u64)> = lines
        .iter()
        .map(|line| (line["op_index"].as_u64().unwrap(), line["iteration"].as_u64().unwrap()))
        .collect();
    assert_eq!(places[..5], [(0, 0), (2, 0), (3, 0), (5, 0), (6, 0)]);
    assert_eq!(places.last(), Some(&(8, 0)));
    assert_eq!(kept, ["main/6:0/0", "main/6:0/1", "main/6:0/2"]);
}

#[test]
fn the_operation_that_makes_the_first_nan_stops_the_run() {
    let options = TraceOptions { break_on_nan: true, keep: None };
    let Traced { lines, outcome, .. } = traced(PROGRAM, options.clone());
    assert_eq!(lines.len(), 2);
    let error = outcome.expect_err("a NaN");
    assert_eq!(error.op(), Some("stablehlo.sqrt"));
    assert!(error.to_string().contains("1 of 2 elements of main/1:0/0"), "{error}");
    let location = error.location().expect("a place");
    assert_eq!(location.name.as_deref(), Some("root"));

    // What only passes a constant's NaN on is not where one was made.
    let masked = PROGRAM.replace("[1.0, -1.0]", "[1.0, 0x7FC00000]");
    assert!(traced(&masked, options).outcome.is_ok());
}
