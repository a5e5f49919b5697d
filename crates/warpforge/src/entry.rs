//! Which function of a module to run.

use warpforge_ir::{Func, Module};

/// The function to run: the named one, `@main`, or the only public one that has a body.
///
/// # Errors
///
/// What there is instead, and what to do.
pub(crate) fn choose<'m>(module: &'m Module, name: Option<&str>) -> Result<Func<'m>, String> {
    let candidates: Vec<Func<'m>> = module.functions().filter(|func| func.body().is_some()).collect();
    let names = || {
        let names: Vec<String> = candidates.iter().map(|func| format!("@{}", func.name())).collect();
        if names.is_empty() { "no functions with a body".to_owned() } else { names.join(", ") }
    };
    let find = |name: &str| candidates.iter().find(|func| func.name() == name).copied();
    if let Some(name) = name {
        let name = name.strip_prefix('@').unwrap_or(name);
        return find(name).ok_or_else(|| format!("there is no function @{name}; the module has {}", names()));
    }
    if let Some(main) = find("main") {
        return Ok(main);
    }
    let mut public = candidates.iter().filter(|func| func.is_public());
    match (public.next(), public.next()) {
        (Some(only), None) => Ok(*only),
        _ => Err(format!("there is no function @main; choose the one to run among {}", names())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpforge_diag::Source;
    use warpforge_snakeburger::text;

    fn chosen(text: &str, name: Option<&str>) -> Result<String, String> {
        let module = text::parse(&Source::new("m", text), &text::Options::default()).unwrap();
        choose(&module, name).map(|func| func.name().to_owned())
    }

    #[test]
    fn main_or_the_only_public_function_is_run() {
        let two = "func.func @main() {\n func.return\n}\nfunc.func @other() {\n func.return\n}";
        assert_eq!(chosen(two, None).as_deref(), Ok("main"));
        assert_eq!(chosen(two, Some("@other")).as_deref(), Ok("other"));
        assert!(chosen(two, Some("third")).unwrap_err().contains("@main, @other"));
        let one = "func.func @f() {\n func.return\n}\nfunc.func private @g() {\n func.return\n}";
        assert_eq!(chosen(one, None).as_deref(), Ok("f"));
        let none = "func.func @a() {\n func.return\n}\nfunc.func @b() {\n func.return\n}";
        assert!(chosen(none, None).unwrap_err().contains("among @a, @b"));
        assert!(chosen("func.func private @a()", None).unwrap_err().contains("no functions with a body"));
    }
}
