//! A planned loop and its machine code, where it is compiled.

use warpforge_tensor::ElementType;

use super::inst::Inst;
#[cfg(target_arch = "x86_64")]
use super::jit::MachineCode;
use super::loop_plan::LoopPlan;
use crate::isa::Isa;

/// A planned loop that is compiled, or interpreted.
#[derive(Debug)]
pub(super) struct CompiledLoop {
    pub(super) plan: LoopPlan,
    /// The compiled loop.
    #[cfg(target_arch = "x86_64")]
    pub(super) code: Option<MachineCode>,
}

impl CompiledLoop {
    /// A loop that is interpreted.
    pub(super) fn interpreted(plan: LoopPlan) -> Self {
        Self {
            plan,
            #[cfg(target_arch = "x86_64")]
            code: None,
        }
    }

    /// A loop that is compiled, where the instruction set allows it.
    pub(super) fn compiled(plan: LoopPlan, isa: Isa, insts: &[Inst], types: &[ElementType]) -> Self {
        #[cfg(target_arch = "x86_64")]
        if isa == Isa::Avx512 {
            let code = MachineCode::new(&plan, insts, types).ok();
            return Self { plan, code };
        }
        let _ = (isa, insts, types);
        Self::interpreted(plan)
    }

    /// Whether it runs as machine code.
    pub(super) fn is_compiled(&self) -> bool {
        #[cfg(target_arch = "x86_64")]
        return self.code.is_some();
        #[cfg(not(target_arch = "x86_64"))]
        false
    }

    /// Whether these buffers allow non-temporal stores.
    pub(super) fn can_stream(&self, outputs: &[*mut u8]) -> bool {
        #[cfg(target_arch = "x86_64")]
        return self.code.as_ref().is_some_and(|code| code.can_stream(&self.plan, outputs));
        #[cfg(not(target_arch = "x86_64"))]
        {
            let _ = outputs;
            false
        }
    }
}
