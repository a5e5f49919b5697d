//! Branches and loops: their regions are compiled like the program around them.

use warpforge_backend_cpu::Cpu;
use warpforge_runtime::{Backend, RunOptions, Tier};
use warpforge_tensor::{ElementType, Scalar, Tensor};

use super::{exact_kernels, kernels, program, target, tensor};

fn number(value: i32) -> Tensor {
    Tensor::from_slice(&[], &[value]).unwrap()
}

fn truth(value: bool) -> Tensor {
    Tensor::scalar(ElementType::Bool, Scalar::Bool(value)).unwrap()
}

/// A loop that multiplies by weights from outside, as often as it is told.
const POWERS: &str = "func.func @main(%w: tensor<12x12xf32>, %x: tensor<5x12xf32>, %n: tensor<i32>) -> (tensor<5x12xf32>, tensor<i32>) {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %r:2 = stablehlo.while(%state = %x, %i = %zero) : tensor<5x12xf32>, tensor<i32>
    cond {
        %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %p : tensor<i1>
    } do {
        %d = stablehlo.dot_general %state, %w, contracting_dims = [1] x [0]
          : (tensor<5x12xf32>, tensor<12x12xf32>) -> tensor<5x12xf32>
        %t = stablehlo.tanh %d : tensor<5x12xf32>
        %next = stablehlo.add %i, %one : tensor<i32>
        stablehlo.return %t, %next : tensor<5x12xf32>, tensor<i32>
    }
    func.return %r#0, %r#1 : tensor<5x12xf32>, tensor<i32> }";

#[test]
fn a_loop_runs_as_often_as_its_condition_says() {
    for count in [-1, 0, 1, 7] {
        let (w, x) = (tensor(&[12, 12], 1), tensor(&[5, 12], 2));
        let names = kernels(POWERS, vec![], &[w.clone(), x.clone(), number(count)]);
        assert_eq!(names, ["stablehlo.while"], "{count}");
        // Weights are constants of the regions.
        kernels(POWERS, vec![Some(w), None, None], &[x, number(count)]);
    }
}

#[test]
fn branches_capture_what_is_around_them() {
    let text = "func.func @main(%p: tensor<i1>, %c: tensor<i32>, %x: tensor<4xi32>, %y: tensor<4xi32>) -> (tensor<4xi32>, tensor<4xi32>) {
        %r = \"stablehlo.if\"(%p) ({
            %s = stablehlo.add %x, %y : tensor<4xi32>
            %q = \"stablehlo.if\"(%p) ({
                stablehlo.return %s : tensor<4xi32>
            }, {
                stablehlo.return %x : tensor<4xi32>
            }) : (tensor<i1>) -> tensor<4xi32>
            stablehlo.return %q : tensor<4xi32>
        }, {
            stablehlo.return %y : tensor<4xi32>
        }) : (tensor<i1>) -> tensor<4xi32>
        %k = \"stablehlo.case\"(%c) ({
            stablehlo.return %x : tensor<4xi32>
        }, {
            %n = stablehlo.negate %r : tensor<4xi32>
            stablehlo.return %n : tensor<4xi32>
        }, {
            %m = stablehlo.multiply %x, %y : tensor<4xi32>
            stablehlo.return %m : tensor<4xi32>
        }) : (tensor<i32>) -> tensor<4xi32>
        func.return %r, %k : tensor<4xi32>, tensor<4xi32> }";
    let (x, y) = ([1i32, -2, 3, 4], [10i32, 20, -30, 40]);
    let [x, y] = [x, y].map(|values| Tensor::from_slice(&[4], &values).unwrap());
    for condition in [true, false] {
        // Numbers that no branch has take the last.
        for case in [-5, 0, 1, 2, 3, i32::MAX] {
            let inputs = [truth(condition), number(case), x.clone(), y.clone()];
            let names = exact_kernels(text, &inputs);
            assert_eq!(names, ["stablehlo.if", "stablehlo.case"]);
        }
    }
}

/// A loop in a loop, whose state has no elements in part.
#[test]
fn loops_nest() {
    let text = "func.func @main(%x: tensor<3xf32>, %e: tensor<0x2xf32>) -> (tensor<3xf32>, tensor<0x2xf32>) {
        %zero = stablehlo.constant dense<0> : tensor<i64>
        %one = stablehlo.constant dense<1> : tensor<i64>
        %four = stablehlo.constant dense<4> : tensor<i64>
        %r:3 = stablehlo.while(%a = %x, %i = %zero, %b = %e) : tensor<3xf32>, tensor<i64>, tensor<0x2xf32>
        cond {
            %p = stablehlo.compare LT, %i, %four : (tensor<i64>, tensor<i64>) -> tensor<i1>
            stablehlo.return %p : tensor<i1>
        } do {
            %s:2 = stablehlo.while(%c = %a, %j = %zero) : tensor<3xf32>, tensor<i64>
            cond {
                %q = stablehlo.compare LT, %j, %i : (tensor<i64>, tensor<i64>) -> tensor<i1>
                stablehlo.return %q : tensor<i1>
            } do {
                %d = stablehlo.add %c, %a : tensor<3xf32>
                %k = stablehlo.add %j, %one : tensor<i64>
                stablehlo.return %d, %k : tensor<3xf32>, tensor<i64>
            }
            %n = stablehlo.add %i, %one : tensor<i64>
            %f = stablehlo.negate %b : tensor<0x2xf32>
            stablehlo.return %s#0, %n, %f : tensor<3xf32>, tensor<i64>, tensor<0x2xf32>
        }
        func.return %r#0, %r#2 : tensor<3xf32>, tensor<0x2xf32> }";
    let empty = Tensor::from_slice::<f32>(&[0, 2], &[]).unwrap();
    let x = Tensor::from_slice(&[3], &[1.0f32, -2.5, 0.125]).unwrap();
    assert_eq!(exact_kernels(text, &[x, empty]), ["stablehlo.while"]);
}

/// A loop with an operation that has no kernel falls back as a whole.
#[test]
fn a_loop_that_needs_the_reference_falls_back() {
    let text = POWERS.replace(
        "stablehlo.tanh %d : tensor<5x12xf32>",
        "stablehlo.custom_call @nobody(%d) : (tensor<5x12xf32>) -> tensor<5x12xf32>",
    );
    let refused =
        Cpu::default().compile(&program(&text, vec![]), &target(Tier::Production, 1)).err().unwrap();
    assert!(refused.to_string().contains("nobody"), "{refused}");
    let text = "func.func @main(%x: tensor<2x2xf32>, %p: tensor<i1>) -> tensor<2x2xf32> {
        %r = \"stablehlo.if\"(%p) ({
            %c = \"stablehlo.cholesky\"(%x) <{lower = true}> : (tensor<2x2xf32>) -> tensor<2x2xf32>
            stablehlo.return %c : tensor<2x2xf32>
        }, {
            stablehlo.return %x : tensor<2x2xf32>
        }) : (tensor<i1>) -> tensor<2x2xf32>
        func.return %r : tensor<2x2xf32> }";
    let (program, target) = (program(text, vec![]), target(Tier::Production, 1));
    assert_eq!(Cpu::default().plan(&program, &target).unwrap().report().fallbacks, ["if"]);
    let executable = Cpu::default().compile(&program, &target).unwrap();
    assert_eq!(executable.fallbacks()[0].to_string(), "stablehlo.if");
    let x = Tensor::from_slice(&[2, 2], &[4.0f32, 0.0, 0.0, 9.0]).unwrap();
    let given = executable.run(&[x, truth(true)], &RunOptions::default()).unwrap().outputs;
    assert_eq!(given[0].as_slice::<f32>().unwrap(), [2.0, 0.0, 0.0, 3.0]);
}
