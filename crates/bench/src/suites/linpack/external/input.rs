//! Input files of HPL programs.

/// A process grid as near to a square as the number of ranks allows, not taller than wide.
fn grid(ranks: usize) -> (usize, usize) {
    let rows =
        (1..=ranks).take_while(|rows| rows * rows <= ranks).filter(|rows| ranks.is_multiple_of(*rows)).last();
    let rows = rows.unwrap_or(1);
    (rows, ranks / rows)
}

/// `HPL.dat`, with the result printed.
pub(super) fn hpl(order: usize, block: usize, ranks: usize) -> String {
    let (rows, columns) = grid(ranks);
    format!(
        "HPLinpack benchmark input file\n\
         Innovative Computing Laboratory, University of Tennessee\n\
         HPL.out      output file name (if any)\n\
         6            device out (6=stdout,7=stderr,file)\n\
         1            # of problems sizes (N)\n\
         {order}      Ns\n\
         1            # of NBs\n\
         {block}      NBs\n\
         0            PMAP process mapping (0=Row-,1=Column-major)\n\
         1            # of process grids (P x Q)\n\
         {rows}       Ps\n\
         {columns}    Qs\n\
         16.0         threshold\n\
         1            # of panel fact\n\
         2            PFACTs (0=left, 1=Crout, 2=Right)\n\
         1            # of recursive stopping criterium\n\
         4            NBMINs (>= 1)\n\
         1            # of panels in recursion\n\
         2            NDIVs\n\
         1            # of recursive panel fact.\n\
         1            RFACTs (0=left, 1=Crout, 2=Right)\n\
         1            # of broadcast\n\
         1            BCASTs (0=1rg,1=1rM,2=2rg,3=2rM,4=Lng,5=LnM)\n\
         1            # of lookahead depth\n\
         1            DEPTHs (>=0)\n\
         2            SWAP (0=bin-exch,1=long,2=mix)\n\
         64           swapping threshold\n\
         0            L1 in (0=transposed,1=no-transposed) form\n\
         0            U  in (0=transposed,1=no-transposed) form\n\
         1            Equilibration (0=no,1=yes)\n\
         8            memory alignment in double (> 0)\n"
    )
}

/// `hpccinf.txt`: the lines of HPL, then no further sizes for the transposition.
pub(super) fn hpcc(order: usize, block: usize, ranks: usize) -> String {
    let hpl = hpl(order, block, ranks);
    format!(
        "{hpl}##### This line (no. 32) is ignored (it serves as a separator). ######\n\
         0                      Number of additional problem sizes for PTRANS\n\
         1200 10000 30000       values of N\n\
         0                      number of additional blocking sizes for PTRANS\n\
         40 9 8 13 13 20 16 32 64       values of NB\n"
    )
}

/// The input of Intel's LINPACK: one problem, solved once.
pub(super) fn xlinpack(order: usize) -> String {
    // A leading dimension that is a multiple of 8 but not of 4096 bytes.
    let dimension =
        order.next_multiple_of(8) + if order.next_multiple_of(8).is_multiple_of(512) { 8 } else { 0 };
    format!(
        "LINPACK data file\n\
         Intel(R) LINPACK data\n\
         1            # number of tests\n\
         {order}      # problem sizes\n\
         {dimension}  # leading dimensions\n\
         1            # times to run a test\n\
         4            # alignment values (in KBytes)\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grids_are_as_square_as_can_be() {
        assert_eq!(
            [1, 2, 3, 4, 6, 12, 16].map(grid),
            [(1, 1), (1, 2), (1, 3), (2, 2), (2, 3), (3, 4), (4, 4)]
        );
    }

    #[test]
    fn values_stand_on_the_lines_that_hpl_reads_them_from() {
        let text = hpcc(3000, 96, 6);
        let first = |line: usize| text.lines().nth(line - 1).unwrap().split_whitespace().next().unwrap();
        assert_eq!([6, 8, 11, 12, 13].map(first), ["3000", "96", "2", "3", "16.0"]);
        assert!(text.lines().nth(31).unwrap().starts_with("#####"));
        assert_eq!(text.lines().count(), 36);
        assert_eq!(hpl(3000, 96, 6).lines().count(), 31);
        assert!(xlinpack(1024).contains("\n1032  # leading"));
    }
}
