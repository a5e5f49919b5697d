//! What the user asked for, turned into a list of benchmarks.

mod defaults;
mod nearest;

pub use defaults::COMPONENT_DEFAULTS;
pub use nearest::nearest;

use crate::benchmark::{Benchmark, Peer};
use crate::record::{BenchmarkComponent, BenchmarkSpec};
use crate::suites::{SUITES, Suite, get_suite};

/// What the user asked for; everything empty asks for the defaults of the components that are present.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// The suite, or any.
    pub suite: Option<String>,
    /// Names of benchmarks, plain or as `suite/name`.
    pub benchmarks: Vec<String>,
    /// Names of components.
    pub components: Vec<String>,
}

/// The benchmarks to run.
pub struct Selection {
    /// The suite or the components asked for, as file names carry it.
    pub name: String,
    /// The benchmarks, in order.
    pub chosen: Vec<Chosen>,
}

impl Selection {
    /// The components that the chosen benchmarks exercise, each once.
    #[must_use]
    pub fn components(&self) -> Vec<BenchmarkComponent> {
        let used = |component: &BenchmarkComponent| {
            self.chosen.iter().any(|chosen| chosen.spec.components.contains(component))
        };
        BenchmarkComponent::ALL.into_iter().filter(used).collect()
    }

    /// Measures peers of these names in turn with each chosen benchmark that has them.
    ///
    /// # Errors
    /// If no chosen benchmark has a peer of one of the names.
    pub fn add_peers(&mut self, names: &[String]) -> Result<(), SelectionError> {
        for name in names {
            let mut found = false;
            for chosen in &mut self.chosen {
                let peers = chosen.benchmark.peers().iter().copied();
                for peer in peers.filter(|peer| peer.name() == name) {
                    found = true;
                    if chosen.peers.iter().all(|earlier| earlier.name() != name) {
                        chosen.peers.push(peer);
                    }
                }
            }
            if !found {
                return Err(self.unknown_peer(name));
            }
        }
        Ok(())
    }

    fn unknown_peer(&self, name: &str) -> SelectionError {
        let peers = self.chosen.iter().flat_map(|chosen| chosen.benchmark.peers());
        let mut known: Vec<&str> = peers.map(|peer| peer.name()).collect();
        known.sort_unstable();
        known.dedup();
        if known.is_empty() {
            let names: Vec<_> = self.chosen.iter().map(|chosen| chosen.spec.id.name.as_str()).collect();
            return SelectionError::NoPeers { name: name.to_owned(), benchmarks: names.join(", ") };
        }
        unknown("peer", name, &known)
    }
}

/// One benchmark of a selection.
pub struct Chosen {
    /// What it is, with the parameters to run with.
    pub spec: BenchmarkSpec,
    /// The benchmark.
    pub benchmark: &'static dyn Benchmark,
    /// The programs that are measured in turn with it.
    pub peers: Vec<&'static dyn Peer>,
}

/// Why there is nothing to run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SelectionError {
    /// There is no such thing.
    #[error("there is no {what} `{name}`{}; there are: {known}", .nearest.as_ref().map(|n| format!(", did you mean `{n}`?")).unwrap_or_default())]
    Unknown {
        /// `suite`, `benchmark`, `component` or `peer`.
        what: &'static str,
        /// What the user wrote.
        name: String,
        /// The one that exists and is spelt most alike.
        nearest: Option<String>,
        /// All that exist.
        known: String,
    },
    /// There is nothing to measure beside.
    #[error("nothing can be measured beside {benchmarks}, not even `{name}`")]
    NoPeers {
        /// What the user wrote.
        name: String,
        /// The benchmarks to run.
        benchmarks: String,
    },
    /// Everything exists, but nothing fits all of it.
    #[error("no benchmark of suite `{suite}` exercises {components}")]
    NothingMatches {
        /// The suite.
        suite: String,
        /// The components asked for.
        components: String,
    },
}

/// Finds the benchmarks that a request asks for. `present` are the components that the machine has.
///
/// # Errors
/// If a name does not exist or nothing fits.
pub fn select(request: &Request, present: &[BenchmarkComponent]) -> Result<Selection, SelectionError> {
    let components = request.components.iter().map(|name| component(name)).collect::<Result<Vec<_>, _>>()?;
    let fits = |spec: &BenchmarkSpec| {
        components.is_empty() || spec.components.iter().any(|component| components.contains(component))
    };
    let suite = request.suite.as_deref().map(suite).transpose()?;

    if !request.benchmarks.is_empty() {
        let mut chosen = Vec::new();
        for name in &request.benchmarks {
            let found = benchmark(suite, name)?;
            if fits(&found.spec()) {
                push_once(&mut chosen, found);
            }
        }
        let name =
            suite.map_or_else(|| request.benchmarks.join("-").replace('/', "-"), |s| s.name.to_owned());
        return non_empty(Selection { name, chosen }, &components);
    }
    if let Some(suite) = suite {
        let mut chosen = Vec::new();
        suite.benchmarks.iter().filter(|b| fits(&b.spec())).for_each(|b| push_once(&mut chosen, *b));
        return non_empty(Selection { name: suite.name.to_owned(), chosen }, &components);
    }
    let wanted = if components.is_empty() { present } else { &components };
    let name = if components.is_empty() { "all".to_owned() } else { join(&components, "-") };
    Ok(Selection { name, chosen: defaults(wanted) })
}

/// A component by its name.
///
/// # Errors
/// If there is none of that name.
pub fn component(name: &str) -> Result<BenchmarkComponent, SelectionError> {
    let all = BenchmarkComponent::ALL;
    all.into_iter()
        .find(|component| component.name() == name)
        .ok_or_else(|| unknown("component", name, &all.map(BenchmarkComponent::name)))
}

/// A suite by its name.
///
/// # Errors
/// If there is none of that name.
pub fn suite(name: &str) -> Result<&'static Suite, SelectionError> {
    get_suite(name)
        .ok_or_else(|| unknown("suite", name, &SUITES.iter().map(|suite| suite.name).collect::<Vec<_>>()))
}

/// A benchmark by its name, plain or as `suite/name`, in one suite or in any.
///
/// # Errors
/// If there is none of that name.
pub fn benchmark(
    within: Option<&'static Suite>,
    name: &str,
) -> Result<&'static dyn Benchmark, SelectionError> {
    let (within, plain) = match (within, name.split_once('/')) {
        (None, Some((suite_name, plain))) => (Some(suite(suite_name)?), plain),
        _ => (within, name),
    };
    let suites: Vec<_> = SUITES.iter().filter(|s| within.is_none_or(|w| w.name == s.name)).collect();
    suites.iter().find_map(|suite| suite.get_benchmark(plain)).ok_or_else(|| {
        let specs: Vec<_> = suites.iter().flat_map(|suite| suite.list_benchmarks()).collect();
        unknown("benchmark", plain, &specs.iter().map(|spec| spec.id.name.as_str()).collect::<Vec<_>>())
    })
}

fn defaults(components: &[BenchmarkComponent]) -> Vec<Chosen> {
    let mut chosen = Vec::new();
    for component in BenchmarkComponent::ALL.into_iter().filter(|c| components.contains(c)) {
        let ids = COMPONENT_DEFAULTS.iter().filter(|(of, _)| *of == component).flat_map(|(_, ids)| *ids);
        ids.filter_map(|(suite, name)| get_suite(suite)?.get_benchmark(name))
            .for_each(|benchmark| push_once(&mut chosen, benchmark));
    }
    chosen
}

fn push_once(chosen: &mut Vec<Chosen>, benchmark: &'static dyn Benchmark) {
    let spec = benchmark.spec();
    if chosen.iter().all(|earlier| earlier.spec.id != spec.id) {
        chosen.push(Chosen { spec, benchmark, peers: Vec::new() });
    }
}

fn non_empty(selection: Selection, components: &[BenchmarkComponent]) -> Result<Selection, SelectionError> {
    if selection.chosen.is_empty() {
        return Err(SelectionError::NothingMatches {
            suite: selection.name,
            components: join(components, " or "),
        });
    }
    Ok(selection)
}

fn join(components: &[BenchmarkComponent], separator: &str) -> String {
    components.iter().map(|component| component.name()).collect::<Vec<_>>().join(separator)
}

fn unknown(what: &'static str, name: &str, known: &[&str]) -> SelectionError {
    let nearest = nearest(name, known.iter().copied()).map(str::to_owned);
    SelectionError::Unknown { what, name: name.to_owned(), nearest, known: known.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use BenchmarkComponent::{Cpu, Network, Ram};

    fn names(request: &Request) -> Result<Vec<String>, SelectionError> {
        let selection = select(request, &[Ram, Cpu])?;
        Ok(selection.chosen.iter().map(|chosen| chosen.spec.id.to_string()).collect())
    }

    fn strings(names: &[&str]) -> Vec<String> {
        names.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn nothing_asked_for_gives_the_defaults_of_what_is_present() {
        assert_eq!(names(&Request::default()).unwrap(), ["micro/cpu_flops", "micro/mem_bandwidth"]);
        assert_eq!(select(&Request::default(), &[Cpu]).unwrap().name, "all");
    }

    #[test]
    fn components_give_their_defaults_present_or_not() {
        let request = Request { components: strings(&["network", "cpu"]), ..Request::default() };
        assert_eq!(names(&request).unwrap(), ["micro/cpu_flops", "micro/net_bandwidth"]);
        let selection = select(&request, &[]).unwrap();
        assert_eq!((selection.name.as_str(), selection.components()), ("network-cpu", vec![Cpu, Network]));
    }

    #[test]
    fn every_component_has_a_default_that_exists() {
        for component in BenchmarkComponent::ALL {
            let (_, ids) = COMPONENT_DEFAULTS.iter().find(|(of, _)| *of == component).unwrap();
            let selection = select(&Request::default(), &[component]).unwrap();
            assert_eq!(selection.chosen.len(), ids.len(), "{component}");
            assert!(selection.components().contains(&component), "{component}");
        }
    }

    #[test]
    fn a_suite_is_filtered_by_component_and_by_name() {
        let suite = Some("micro".to_owned());
        let request = Request { suite: suite.clone(), components: strings(&["ram"]), ..Request::default() };
        assert_eq!(names(&request).unwrap(), ["micro/mem_bandwidth", "micro/mem_latency"]);
        let request = Request { suite, benchmarks: strings(&["disk_io", "disk_io"]), ..Request::default() };
        assert_eq!(names(&request).unwrap(), ["micro/disk_io"]);
        let request = Request { benchmarks: strings(&["micro/mem_latency"]), ..Request::default() };
        assert_eq!(names(&request).unwrap(), ["micro/mem_latency"]);
    }

    #[test]
    fn an_unknown_name_names_the_nearest() {
        let error = |request: &Request| names(request).unwrap_err().to_string();
        let suite = |name: &str| Request { suite: Some(name.to_owned()), ..Request::default() };
        assert!(error(&suite("mirco")).contains("no suite `mirco`, did you mean `micro`?"));
        let request = Request { benchmarks: strings(&["cpuflops"]), ..suite("micro") };
        assert!(error(&request).contains("did you mean `cpu_flops`?"));
        let request = Request { components: strings(&["netwrok"]), ..Request::default() };
        assert!(error(&request).contains("did you mean `network`?"));
        assert!(!error(&suite("zzzzzz")).contains("did you mean"));
    }

    #[test]
    fn a_benchmark_that_does_not_fit_the_component_is_said_so() {
        let request = Request {
            suite: Some("micro".to_owned()),
            benchmarks: strings(&["disk_io"]),
            components: strings(&["cpu"]),
        };
        assert!(matches!(names(&request), Err(SelectionError::NothingMatches { .. })));
    }
}
