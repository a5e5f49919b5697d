//! One launch for several equal kernels: the pointers of each member come from a table.

use crate::kernel::{Argument, Kernel};

impl Kernel {
    /// Whether launches of the kernel can be grouped: its parameters are pointers to values, and its source is one function.
    #[must_use]
    pub fn can_be_grouped(&self) -> bool {
        self.parts().is_some()
    }

    /// One kernel for launches that do not depend on each other, all of kernels with the same name. Its only parameter is a table of
    /// addresses in device memory, which [`Kernel::arguments`] does not have: a row for each member, with the addresses of its arguments in
    /// their order.
    #[must_use]
    pub fn group(members: &[&Kernel]) -> Option<Kernel> {
        let first = members.first()?;
        let (bounds, parameters, body) = first.parts()?;
        let of_row = |(at, declared): (usize, &str)| {
            let ty = declared.split_once('*')?.0;
            Some(format!("({ty}*)row[{at}]"))
        };
        let pointers: Vec<String> = parameters.split(", ").enumerate().map(of_row).collect::<Option<_>>()?;
        let (name, member) = (format!("{}_group", first.name), format!("{}_member", first.name));
        let (blocks, count) = (first.grid[0], first.arguments.len());
        let grid = u32::try_from(members.len()).ok()?.checked_mul(blocks).filter(|&all| all < 1 << 31)?;
        let source = format!(
            "WF_DEVICE void {member}(const int member_block, {parameters}){}\
             extern \"C\" {bounds}void {name}(const unsigned long long* WF_RESTRICT table)\n\
             {{\n  \
               const unsigned long long* const row = table + WF_BLOCK / {blocks} * {count};\n  \
               {member}(WF_BLOCK % {blocks}, {});\n\
             }}\n",
            body.replace("WF_BLOCK", "member_block"),
            pointers.join(", "),
        );
        Some(Kernel {
            name,
            source,
            grid: [grid, 1, 1],
            block: first.block,
            shared_bytes: first.shared_bytes,
            arguments: Vec::new(),
            flops: members.iter().map(|member| member.flops).sum(),
            bytes: members.iter().map(|member| member.bytes).sum(),
            salt_bytes: 0,
            title: format!("{} of {}", members.len(), first.title),
        })
    }

    /// The launch bounds, parameters and body of a kernel that can be grouped.
    fn parts(&self) -> Option<(&str, &str, &str)> {
        let is_pointer = |argument: &Argument| matches!(argument, Argument::Value(_) | Argument::Output(_));
        let plain = !self.arguments.is_empty() && self.arguments.iter().all(is_pointer);
        if !plain || self.grid[1..] != [1, 1] || self.grid[0] == 0 {
            return None;
        }
        let head = format!("void {}(", self.name);
        let (bounds, rest) = self.source.strip_prefix("extern \"C\" ")?.split_once(&head)?;
        let (parameters, body) = rest.split_once(')')?;
        Some((bounds, parameters, body))
    }
}

#[cfg(test)]
mod tests {
    use warpforge_fusion::NodeId;

    use super::*;

    fn kernel(arguments: Vec<Argument>) -> Kernel {
        Kernel {
            name: "wf_add".to_owned(),
            source: "extern \"C\" WF_KERNEL(256, 0) void wf_add(const float* WF_RESTRICT p0, unsigned short* p1)\n{\n  p1[WF_BLOCK] = \
                     p0[WF_BLOCK];\n}\n"
                .to_owned(),
            grid: [12, 1, 1],
            block: [256, 1, 1],
            shared_bytes: 0,
            arguments,
            flops: 0,
            bytes: 0,
            salt_bytes: 0,
            title: "addition".to_owned(),
        }
    }

    #[test]
    fn a_group_reads_the_pointers_of_each_member_from_its_row() {
        let member = kernel(vec![Argument::Value(NodeId(0)), Argument::Output(NodeId(1))]);
        let group = Kernel::group(&[&member, &member, &member]).unwrap();
        assert_eq!((group.grid, group.title.as_str()), ([36, 1, 1], "3 of addition"));
        assert_eq!(group.name, "wf_add_group");
        assert_eq!(
            group.source,
            "WF_DEVICE void wf_add_member(const int member_block, const float* WF_RESTRICT p0, unsigned short* p1)\n{\n  \
             p1[member_block] = p0[member_block];\n}\nextern \"C\" WF_KERNEL(256, 0) void wf_add_group(const unsigned long long* \
             WF_RESTRICT table)\n{\n  const unsigned long long* const row = table + WF_BLOCK / 12 * 2;\n  wf_add_member(WF_BLOCK % 12, \
             (const float*)row[0], (unsigned short*)row[1]);\n}\n"
        );
    }

    #[test]
    fn kernels_with_more_than_pointers_to_values_have_no_group() {
        assert!(!kernel(vec![Argument::Value(NodeId(0)), Argument::Scratch(0)]).can_be_grouped());
        assert!(!kernel(vec![Argument::Value(NodeId(0)), Argument::Salt]).can_be_grouped());
        let mut tall = kernel(vec![Argument::Value(NodeId(0)), Argument::Output(NodeId(1))]);
        tall.grid[1] = 2;
        assert!(!tall.can_be_grouped());
        let mut helped = kernel(vec![Argument::Value(NodeId(0)), Argument::Output(NodeId(1))]);
        helped.source.insert_str(0, "WF_DEVICE int at() { return WF_BLOCK; }\n");
        assert!(!helped.can_be_grouped());
    }
}
