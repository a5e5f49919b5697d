//! The dependency graph of a crate's source files, read from their paths.
//!
//! A file depends on the file that defines what a path names: `crate::a::B` is in `a.rs`, or in the child that `a`
//! re-exports `B` from. Module declarations and re-exports of children are no dependencies; neither are tests.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Files as module paths (`lower::gemm`), with those that each depends on.
type Graph = BTreeMap<String, BTreeSet<String>>;

/// A crate's modules.
struct Modules {
    /// The source of each module, without comments and tests.
    sources: BTreeMap<String, String>,
    /// The names that each module re-exports from its children.
    exports: BTreeMap<String, BTreeMap<String, String>>,
}

/// Groups of files, and of top-level modules, that depend on each other in a cycle.
pub(crate) fn cycles(folder: &Path) -> Vec<BTreeSet<String>> {
    let files = Modules::read(folder).graph();
    let mut top = Graph::new();
    for (file, uses) in &files {
        let first = |path: &str| path.split("::").next().unwrap_or_default().to_owned();
        let uses = uses.iter().map(|used| first(used)).filter(|used| *used != first(file));
        top.entry(first(file)).or_default().extend(uses);
    }
    let mut found = components(&files);
    found.extend(components(&top));
    found
}

impl Modules {
    fn read(folder: &Path) -> Self {
        let mut modules = Self { sources: BTreeMap::new(), exports: BTreeMap::new() };
        modules.add(folder, "");
        let tests: BTreeSet<String> =
            modules.sources.iter().flat_map(|(path, source)| tests_in(path, source)).collect();
        let ends =
            |path: &str| path.match_indices("::").map(|(at, _)| at).chain([path.len()]).collect::<Vec<_>>();
        modules.sources.retain(|path, _| !ends(path).into_iter().any(|end| tests.contains(&path[..end])));
        let mut exports = BTreeMap::new();
        for (path, source) in &modules.sources {
            let is_child = |name: &str| modules.sources.contains_key(&join(path, name));
            let public = uses(source).into_iter().filter(|(public, _)| *public);
            let names = public.flat_map(|(_, tree)| expand(&tree)).filter(|names| is_child(&names[0]));
            let exported = names.filter_map(|names| {
                let alias = names.last()?.rsplit('@').next()?.to_owned();
                Some((alias, join(path, &names[0])))
            });
            exports.insert(path.clone(), exported.collect());
        }
        modules.exports = exports;
        modules
    }

    fn add(&mut self, folder: &Path, path: &str) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let file = entry.unwrap().path();
            let name = file.file_stem().unwrap().to_str().unwrap().to_owned();
            if file.is_dir() {
                self.add(&file, &join(path, &name));
            } else if file.extension().is_some_and(|extension| extension == "rs") {
                let module = if name == "mod" || name == "lib" { path.to_owned() } else { join(path, &name) };
                self.sources.insert(module, plain(&std::fs::read_to_string(&file).unwrap()));
            }
        }
    }

    /// The module that defines what a path from the root names.
    fn resolve(&self, names: &[String]) -> String {
        let mut module = String::new();
        for name in names {
            let next = join(&module, name);
            if !self.sources.contains_key(&next) {
                let exported = self.exports.get(&module).and_then(|exports| exports.get(name));
                return exported.cloned().unwrap_or(module);
            }
            module = next;
        }
        module
    }

    fn graph(&self) -> Graph {
        let files = self.sources.iter().filter(|(path, _)| !path.is_empty());
        files.map(|(path, source)| (path.clone(), self.dependencies(path, source))).collect()
    }

    fn dependencies(&self, path: &str, source: &str) -> BTreeSet<String> {
        let own: Vec<String> = path.split("::").map(str::to_owned).collect();
        let mut found = BTreeSet::new();
        for names in paths(source) {
            let mut full = match names[0].as_str() {
                "crate" => Vec::new(),
                "super" => own[..own.len() - 1].to_vec(),
                child if self.sources.contains_key(&join(path, child)) => {
                    let mut base = own.clone();
                    base.push(child.to_owned());
                    base
                }
                _ => continue,
            };
            for name in &names[1..] {
                match name.as_str() {
                    "super" => drop(full.pop()),
                    _ => full.push(name.clone()),
                }
            }
            found.insert(self.resolve(&full));
        }
        found.remove(path);
        found.remove("");
        found
    }
}

/// The modules that a module declares for tests only.
fn tests_in(path: &str, source: &str) -> Vec<String> {
    let after = source.split("#[cfg(test)]\n").skip(1);
    let names = after.filter_map(|rest| Some(rest.strip_prefix("mod ")?.split_once(';')?.0));
    names.map(|name| join(path, name)).collect()
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}::{name}") }
}

/// A source without comments, strings and tests.
fn plain(source: &str) -> String {
    let code = source.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let line = |line: &str| without_strings(line).split("//").next().unwrap_or_default().to_owned();
    code.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// A line without what is between its quotes; a line with an odd number of quotes as it is.
fn without_strings(line: &str) -> String {
    let parts: Vec<&str> = line.split('"').collect();
    match parts.len() % 2 {
        0 => line.to_owned(),
        _ => parts.into_iter().step_by(2).collect::<Vec<_>>().join("\"\""),
    }
}

/// The position of `use` in a statement, whether it is public, and its tree without spaces; an alias follows `@`.
fn use_of(statement: &str) -> Option<(usize, bool, String)> {
    let words: Vec<&str> = statement.trim_end_matches(';').split_whitespace().collect();
    let at = words.iter().rposition(|word| *word == "use")?;
    let tree = words[at + 1..].iter().map(|word| if *word == "as" { "@" } else { word });
    Some((at, at > 0 && words[at - 1].starts_with("pub"), tree.collect()))
}

/// The `use` statements of a source: whether each is public, and its tree.
fn uses(source: &str) -> Vec<(bool, String)> {
    source.split(';').filter_map(use_of).map(|(_, public, tree)| (public, tree)).collect()
}

/// The paths of a use tree, as names.
fn expand(tree: &str) -> Vec<Vec<String>> {
    let Some(open) = tree.find('{') else {
        return vec![tree.split("::").map(str::to_owned).collect()];
    };
    let inner = &tree[open + 1..tree.rfind('}').unwrap_or(tree.len())];
    let mut items = vec![String::new()];
    let mut depth = 0;
    for letter in inner.chars() {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        match items.last_mut() {
            Some(item) if letter != ',' || depth > 0 => item.push(letter),
            _ => items.push(String::new()),
        }
    }
    let items = items.iter().filter(|item| !item.is_empty());
    items.flat_map(|item| expand(&format!("{}{item}", &tree[..open]))).collect()
}

/// All paths of a source, as names. Public uses of children are re-exports and left out.
fn paths(source: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let mut code = String::new();
    for part in source.split_inclusive(';') {
        match use_of(part) {
            Some((at, public, tree)) => {
                let of_child = !(tree.starts_with("crate::") || tree.starts_with("super::"));
                if !(public && of_child) {
                    found.extend(expand(&tree));
                }
                let before: Vec<&str> = part.split_whitespace().take(at).collect();
                code.push_str(&before.join(" "));
            }
            None => code.push_str(part),
        }
    }
    let is_name = |letter: char| letter.is_alphanumeric() || letter == '_';
    for chain in code.split(|letter: char| !is_name(letter) && letter != ':') {
        let names: Vec<String> = chain.split("::").map(str::to_owned).collect();
        if names.len() > 1 && names.iter().all(|name| !name.is_empty() && name.chars().all(is_name)) {
            found.push(names);
        }
    }
    let clean = |names: Vec<String>| {
        let names = names.into_iter().filter(|name| name != "self" && name != "*");
        let names = names.map(|name| name.split('@').next().unwrap_or_default().to_owned());
        names.collect::<Vec<String>>()
    };
    found.into_iter().map(clean).filter(|names| !names.is_empty()).collect()
}

/// The strongly connected components of more than one node.
fn components(graph: &Graph) -> Vec<BTreeSet<String>> {
    let reach = |from: &String| {
        let mut seen = BTreeSet::new();
        let mut pending: Vec<&String> = graph.get(from).into_iter().flatten().collect();
        while let Some(next) = pending.pop() {
            if seen.insert(next.clone()) {
                pending.extend(graph.get(next).into_iter().flatten());
            }
        }
        seen
    };
    let reached: BTreeMap<&String, BTreeSet<String>> = graph.keys().map(|file| (file, reach(file))).collect();
    let mut found: Vec<BTreeSet<String>> = Vec::new();
    for (&file, others) in &reached {
        if others.contains(file) && !found.iter().any(|known| known.contains(file)) {
            let back = others.iter().filter(|other| reached.get(other).is_some_and(|to| to.contains(file)));
            found.push(back.cloned().collect());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<BTreeSet<String>> {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        cycles(folder.path())
    }

    #[test]
    fn cycles_are_found_through_re_exports() {
        let root = ("lib.rs", "mod a;\nmod b;\n#[cfg(test)]\nmod fake;\n");
        let parent = ("a/mod.rs", "mod x;\npub(crate) use x::{Thing, other as another};\n");
        let user = ("b.rs", "use crate::a::{another, Thing};");
        let groups = found(&[root, parent, ("a/x.rs", "use crate::b::B;"), user]);
        assert!(groups.iter().any(|group| group.contains("a::x") && group.contains("b")), "{groups:?}");
        let open = [root, parent, ("a/x.rs", ""), ("b.rs", "fn f() { crate::a::Thing::new() }")];
        assert!(found(&open).is_empty());
        let tests = ("a/x.rs", "#[cfg(test)]\nmod tests {\nuse crate::b::B;\n}");
        assert!(found(&[root, parent, tests, user]).is_empty());
    }

    #[test]
    fn a_child_that_uses_its_parent_and_is_used_by_it_is_a_cycle() {
        let root = ("lib.rs", "mod a;\n");
        let child = ("a/x.rs", "use super::Parent;");
        assert_eq!(found(&[root, ("a/mod.rs", "mod x;\nfn f() { x::g() }"), child]).len(), 1);
        assert!(found(&[root, ("a/mod.rs", "mod x;\npub use x::g;"), child]).is_empty());
    }
}
