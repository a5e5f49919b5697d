//! Reads modules, verifies them, prints them again and checks that the print reads back as the same text.
//!
//! `reprint [--out DIR] FILE…` prints one line for each file that fails and a count at the end. With `--out`, what was
//! printed is written there under the file's name, for other tools to compare.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use warpforge_diag::{Diagnostics, Source};
use warpforge_ir::print::print;
use warpforge_snakeburger::load_file;
use warpforge_snakeburger::text::{Options, parse};

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1).peekable();
    let out = arguments.next_if(|a| a == "--out").and_then(|_| arguments.next()).map(PathBuf::from);
    let (mut passed, mut failed) = (0usize, 0usize);
    for path in arguments {
        match reprint(Path::new(&path)) {
            Ok(text) => {
                passed += 1;
                if let (Some(dir), Some(name)) = (&out, Path::new(&path).file_name())
                    && let Err(error) = std::fs::write(dir.join(name), text)
                {
                    eprintln!("{}: {error}", dir.display());
                }
            }
            Err(why) => {
                failed += 1;
                eprintln!("{why}");
            }
        }
    }
    println!("{passed} passed, {failed} failed");
    ExitCode::from(u8::from(failed > 0))
}

fn reprint(path: &Path) -> Result<String, String> {
    let name = path.display().to_string();
    let modules = load_file(path, &Options::default()).map_err(|error| format!("{name}: {error}"))?;
    let mut all = Vec::new();
    for loaded in modules {
        let module = loaded.module.map_err(|diagnostics| diagnostics.to_string())?;
        let source = loaded.source;
        let mut found = Diagnostics::new(source);
        found.extend(warpforge_ir::verify(&module));
        if found.has_errors() {
            return Err(found.to_string());
        }
        let first = print(&module);
        let again = Source::new(format!("{name} (printed)"), first.as_str());
        let module = parse(&again, &Options::default()).map_err(|diagnostics| diagnostics.to_string())?;
        if print(&module) != first {
            return Err(format!("{name}: the second print differs from the first"));
        }
        all.push(first);
    }
    Ok(all.join("// -----\n"))
}
