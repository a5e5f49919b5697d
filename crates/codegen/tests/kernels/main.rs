//! Emitted kernels: their source is that of the snapshots, they compute on the host what the reference computes, and the
//! compilers of both dialects accept them.

mod attention;
mod attention_gradient;
mod case;
mod gemm;
mod hip;
mod host;
mod indexing;
mod loops;
mod nvrtc;
mod peak;
mod regions;
mod rows;
mod softmax;
mod tool;
mod unfused;
mod weights;

use libtest_mimic::{Arguments, Completion, Trial};

use tool::{ALL, Test, Tool};

fn main() {
    let arguments = Arguments::from_args();
    let missing: Vec<(Tool, Option<String>)> = ALL.iter().map(|&tool| (tool, tool.missing())).collect();
    let tests = [
        attention::TESTS,
        attention_gradient::TESTS,
        gemm::TESTS,
        indexing::TESTS,
        loops::TESTS,
        peak::TESTS,
        regions::TESTS,
        rows::TESTS,
        unfused::TESTS,
        weights::TESTS,
    ];
    let tests: Vec<Test> = tests.concat();
    let reason =
        |tool: Tool| missing.iter().find(|(known, _)| *known == tool).and_then(|(_, why)| why.clone());
    let trials = tests.into_iter().flat_map(|test| {
        let tools = std::iter::once(Tool::Source).chain(test.needs.iter().copied());
        let trials = tools.map(|tool| {
            let missing = reason(tool);
            Trial::ignorable_test(format!("{}/{}", test.name, tool.name()), move || match missing {
                Some(reason) => Ok(Completion::ignored_with(reason)),
                None => {
                    test.check(tool);
                    Ok(Completion::Completed)
                }
            })
        });
        trials.collect::<Vec<_>>()
    });
    libtest_mimic::run(&arguments, trials.collect()).exit();
}
