//! What HPL programs print.

/// The result of a program.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Outcome {
    /// The version that the program says it has.
    pub(super) version: Option<String>,
    pub(super) gflops: f64,
    pub(super) seconds: f64,
    /// HPL's scaled residual.
    pub(super) residual: Option<f64>,
    /// Whether the program's own check passed.
    pub(super) passed: bool,
}

/// The last result in the output of HPL or of the HPC Challenge.
///
/// A result is a line `T/V N NB P Q Time Gflops`, whose first word is `W` and the encoded variant, and after it a line
/// with the scaled residual and PASSED or FAILED.
pub(super) fn hpl(text: &str) -> Option<Outcome> {
    let mut found: Option<Outcome> = None;
    let mut version = None;
    for line in text.lines() {
        if let Some(rest) = line.split("HPC Challenge Benchmark version ").nth(1) {
            version = rest.split_whitespace().next().map(str::to_owned);
        } else if let Some(rest) = line.strip_prefix("HPLinpack ").filter(|_| version.is_none()) {
            version = rest.split_whitespace().next().filter(|word| is_version(word)).map(str::to_owned);
        }
        if let Some((seconds, gflops)) = result_line(line) {
            found = Some(Outcome { version: None, gflops, seconds, residual: None, passed: false });
        } else if line.starts_with("||Ax-b||_oo")
            && let Some(outcome) = &mut found
        {
            let mut words = line.split_once('=').map_or("", |(_, after)| after).split_whitespace();
            outcome.residual = words.next().and_then(|word| word.parse().ok());
            outcome.passed =
                words.last() == Some("PASSED") && outcome.residual.is_some_and(|residual| residual < 16.0);
        }
    }
    found.map(|outcome| Outcome { version, ..outcome })
}

fn is_version(word: &str) -> bool {
    word.starts_with(|first: char| first.is_ascii_digit())
}

/// Seconds and GFLOP/s of a line such as `WR11C2R4  512  64  1  1  0.05  1.843e+00`.
fn result_line(line: &str) -> Option<(f64, f64)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [variant, sizes @ .., seconds, gflops] = &words[..] else { return None };
    let is_result = variant.starts_with('W')
        && variant.len() == 8
        && sizes.len() == 4
        && sizes.iter().all(|size| size.parse::<u64>().is_ok());
    let rate = |text: &str| text.parse::<f64>().ok().filter(|value| value.is_finite() && *value >= 0.0);
    if is_result { rate(seconds).zip(rate(gflops)) } else { None }
}

/// The result of Intel's LINPACK: a line `Size LDA Align. Time(s) GFlops Residual Residual(norm) Check`.
pub(super) fn xlinpack(text: &str) -> Option<Outcome> {
    let version = text.lines().find_map(|line| {
        let rest = line.split("LINPACK").nth(1)?;
        rest.split_whitespace().find(|word| is_version(word)).map(str::to_owned)
    });
    text.lines().rev().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [size, dimension, _, seconds, gflops, _, residual, check] = words[..] else { return None };
        size.parse::<u64>().ok()?;
        dimension.parse::<u64>().ok()?;
        let residual: f64 = residual.parse().ok()?;
        Some(Outcome {
            version: version.clone(),
            gflops: gflops.parse().ok()?,
            seconds: seconds.parse().ok()?,
            residual: Some(residual),
            passed: check == "pass" && residual < 16.0,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From hpcc 1.5.0 of Debian 12, cut.
    const HPCC: &str = include_str!("samples/hpccoutf.txt");

    #[test]
    fn the_result_of_hpcc_is_that_of_its_hpl_section() {
        let wanted = Outcome {
            version: Some("1.5.0".to_owned()),
            gflops: 1.843,
            seconds: 0.05,
            residual: Some(0.006_426_7),
            passed: true,
        };
        assert_eq!(hpl(HPCC), Some(wanted));
    }

    #[test]
    fn hpl_by_itself_has_its_own_version() {
        let text = "HPLinpack 2.3  --  High-Performance Linpack benchmark  --   December 2, 2018\n\
                    WR11C2R4       29000   192     2     2             101.23             1.6064e+02\n\
                    ||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=   2.41e-03 ...... PASSED\n";
        let found = hpl(text).unwrap();
        assert_eq!((found.version.as_deref(), found.gflops, found.seconds), (Some("2.3"), 160.64, 101.23));
        assert_eq!((found.residual, found.passed), (Some(0.002_41), true));
    }

    #[test]
    fn a_failed_or_missing_check_does_not_pass() {
        let failed = HPCC.replace("0.0064267 ...... PASSED", "61234.5 ...... FAILED");
        let found = hpl(&failed).unwrap();
        assert_eq!((found.passed, found.residual), (false, Some(61234.5)));
        let lying = HPCC.replace("0.0064267 ...... PASSED", "61234.5 ...... PASSED");
        assert!(!hpl(&lying).unwrap().passed);
        let cut = HPCC.split("||Ax-b||_oo/(").next().unwrap();
        assert!(!hpl(cut).unwrap().passed);
        for nonsense in ["", "WR11C2R4", "WR11C2R4 a b c d e f", "Wednesday 1 2 3 4 5 6", "||Ax-b||_oo/= x"] {
            assert_eq!(hpl(nonsense), None, "{nonsense}");
        }
    }

    #[test]
    fn intels_table_is_read() {
        let text = "Intel(R) Optimized LINPACK Benchmark data\n\n\
                    Size   LDA    Align. Time(s)    GFlops   Residual     Residual(norm) Check\n\
                    1000   1000   4      0.008      83.6212  8.637047e-13 2.945463e-02   pass\n\n\
                    Performance Summary (GFlops)\n\n\
                    Size   LDA    Align.  Average  Maximal\n\
                    1000   1000   4       83.6212  83.6212\n\n\
                    Residual checks PASSED\n";
        let found = xlinpack(text).unwrap();
        assert_eq!((found.gflops, found.seconds, found.passed), (83.6212, 0.008, true));
        assert!(!xlinpack(&text.replace("  pass\n", "  fail\n")).unwrap().passed);
        assert_eq!(xlinpack("nothing"), None);
    }
}
