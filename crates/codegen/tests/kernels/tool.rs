//! The compilers that tests need. A test is one trial for its source, and one for each compiler that takes its kernels;
//! a trial whose compiler is missing is ignored with the reason.

use std::cell::{Cell, RefCell};

use crate::{hip, host, nvrtc};

/// What a trial checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tool {
    /// The emitted source itself.
    Source,
    /// Results of kernels that a C++ compiler builds for the host.
    Host,
    /// Compilation by NVRTC.
    Nvrtc,
    /// Compilation by clang for an AMD device.
    Clang(&'static str),
}

impl Tool {
    /// Why it cannot be used on this machine.
    pub(crate) fn missing(self) -> Option<String> {
        match self {
            Tool::Source => None,
            Tool::Host => host::missing(),
            Tool::Nvrtc => nvrtc::missing(),
            Tool::Clang(device) => hip::missing(device),
        }
    }

    /// The last part of a trial's name.
    pub(crate) fn name(self) -> String {
        match self {
            Tool::Source => "source".to_owned(),
            Tool::Host => "host".to_owned(),
            Tool::Nvrtc => "nvrtc".to_owned(),
            Tool::Clang(device) => format!("clang_{device}"),
        }
    }
}

/// No compiler: the source alone.
pub(crate) const NONE: &[Tool] = &[];
/// The host's compiler.
pub(crate) const HOST: &[Tool] = &[Tool::Host];
/// The host's compiler and that of CUDA.
pub(crate) const HOST_AND_CUDA: &[Tool] = &[Tool::Host, Tool::Nvrtc];
/// The compilers of both dialects.
pub(crate) const COMPILERS: &[Tool] = &[
    Tool::Nvrtc,
    Tool::Clang(hip::DEVICES[0]),
    Tool::Clang(hip::DEVICES[1]),
    Tool::Clang(hip::DEVICES[2]),
    Tool::Clang(hip::DEVICES[3]),
];
/// All of them.
pub(crate) const ALL: &[Tool] =
    &[Tool::Host, COMPILERS[0], COMPILERS[1], COMPILERS[2], COMPILERS[3], COMPILERS[4]];

/// A test and the compilers that it uses.
#[derive(Clone, Copy)]
pub(crate) struct Test {
    pub(crate) name: &'static str,
    pub(crate) run: fn(),
    pub(crate) needs: &'static [Tool],
}

/// The tests of a file, as `TESTS`: the file's name, then the functions with the compilers that they use.
macro_rules! tests {
    ($file:literal; $($run:ident: $needs:expr),* $(,)?) => {
        pub(crate) const TESTS: &[$crate::tool::Test] = &[$($crate::tool::Test {
            name: concat!($file, "/", stringify!($run)),
            run: $run,
            needs: $needs,
        }),*];
    };
}
pub(crate) use tests;

thread_local! {
    /// What the trial of this thread checks.
    static CURRENT: Cell<Tool> = const { Cell::new(Tool::Source) };
    /// The tools that the test has asked for so far.
    static ASKED: RefCell<Vec<Tool>> = const { RefCell::new(Vec::new()) };
}

/// Whether the current trial is the one for a tool.
pub(crate) fn is_current(tool: Tool) -> bool {
    ASKED.with_borrow_mut(|asked| {
        if !asked.contains(&tool) {
            asked.push(tool);
        }
    });
    CURRENT.get() == tool
}

impl Test {
    /// Runs the trial for a tool. A list of tools that is not what the test asks for fails, so that no trial is empty.
    pub(crate) fn check(&self, tool: Tool) {
        CURRENT.set(tool);
        ASKED.with_borrow_mut(Vec::clear);
        (self.run)();
        let asked: Vec<Tool> =
            ASKED.with_borrow(|asked| asked.iter().copied().filter(|tool| *tool != Tool::Source).collect());
        let same = asked.len() == self.needs.len() && self.needs.iter().all(|need| asked.contains(need));
        assert!(same, "the test lists {:?} and uses {asked:?}", self.needs);
    }
}
