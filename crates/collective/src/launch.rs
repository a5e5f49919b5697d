//! Which rank of how many this process is: what launchers say in the environment.

use std::net::IpAddr;

use crate::Error;
use crate::mpi::MpiLibrary;
use crate::tcp::Meeting;

/// Variables of the environment with their values.
pub type Variables = Vec<(&'static str, String)>;

/// How ranks talk to each other.
#[derive(Debug)]
#[non_exhaustive]
pub enum Engine {
    /// By TCP.
    Tcp(Meeting),
    /// By MPI.
    Mpi(MpiLibrary),
    /// By UCC, after they have met over TCP.
    Ucc(Meeting),
    /// Not at all: there is one.
    Alone,
}

/// This process among the others.
#[derive(Debug)]
pub struct World {
    /// Its rank, from 0.
    pub rank: usize,
    /// How many there are.
    pub size: usize,
    /// How many of them share this machine, as far as that is known.
    pub local: usize,
    /// Which of those it is, from 0.
    pub local_rank: usize,
    /// How they talk.
    pub engine: Engine,
}

/// The variables that ranks over TCP are described by, as PyTorch has them.
const RANK: &str = "RANK";
const WORLD_SIZE: &str = "WORLD_SIZE";
const MASTER_ADDR: &str = "MASTER_ADDR";
const MASTER_PORT: &str = "MASTER_PORT";

/// Ports that jobs of Slurm meet at, where none is said: from the first, so many.
const SLURM_PORTS: (u32, u32) = (20_000, 20_000);

impl World {
    /// What the environment says; `None` where no launcher started this process, or the only one of its kind.
    ///
    /// `RANK`, `WORLD_SIZE`, `MASTER_ADDR` and `MASTER_PORT` come first, then the variables of Open MPI's and MPICH's `mpirun`, then
    /// those of Slurm's `srun`.
    ///
    /// # Errors
    ///
    /// When variables are missing or make no sense.
    pub fn from_environment() -> Result<Option<Self>, Error> {
        Self::from_variables(&|name| std::env::var(name).ok())
    }

    /// As [`World::from_environment`], with other variables.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn from_variables(variable: &dyn Fn(&str) -> Option<String>) -> Result<Option<Self>, Error> {
        let world = match () {
            () if variable(RANK).is_some() && variable(WORLD_SIZE).is_some() => {
                let (rank, size) = place(variable, RANK, WORLD_SIZE)?;
                let meeting = named_meeting(variable, RANK)?;
                let host = &meeting.host;
                let here = host == "localhost" || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback());
                let local = if here { size } else { leading(variable, "LOCAL_WORLD_SIZE") };
                let local_rank = match number(variable, "LOCAL_RANK")? {
                    Some(local_rank) => local_rank,
                    None if here => rank,
                    None => 0,
                };
                Self { rank, size, local, local_rank, engine: Engine::Tcp(meeting) }
            }
            () if variable("OMPI_COMM_WORLD_SIZE").is_some() => {
                let (rank, size) = place(variable, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE")?;
                let local = leading(variable, "OMPI_COMM_WORLD_LOCAL_SIZE");
                let local_rank = number(variable, "OMPI_COMM_WORLD_LOCAL_RANK")?.unwrap_or(0);
                Self { rank, size, local, local_rank, engine: Engine::Mpi(MpiLibrary::OpenMpi) }
            }
            () if variable("PMI_SIZE").is_some() && variable("PMI_RANK").is_some() => {
                let (rank, size) = place(variable, "PMI_RANK", "PMI_SIZE")?;
                let local = leading(variable, "MPI_LOCALNRANKS");
                let local_rank = number(variable, "MPI_LOCALRANKID")?.unwrap_or(0);
                Self { rank, size, local, local_rank, engine: Engine::Mpi(MpiLibrary::Mpich) }
            }
            // A batch script has the other variables too, though nobody started several of it.
            () if variable("SLURM_STEP_NUM_TASKS").is_some() => {
                let (rank, size) = place(variable, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS")?;
                let local = leading(variable, "SLURM_STEP_TASKS_PER_NODE");
                let local_rank = number(variable, "SLURM_LOCALID")?.unwrap_or(0);
                Self { rank, size, local, local_rank, engine: Engine::Tcp(slurm(variable)?) }
            }
            () => return Ok(None),
        };
        Ok(Some(world).filter(|world| world.size > 1))
    }

    /// The first of ranks that this process starts itself, and the variables that the others are started with.
    ///
    /// # Errors
    ///
    /// When there is no port to meet at.
    pub fn parent(size: usize) -> std::io::Result<(Self, Vec<Variables>)> {
        let listener = crate::tcp::listen()?;
        let address = listener.local_addr()?;
        let (host, port) = (address.ip().to_string(), address.port());
        let variables = |rank: usize| {
            vec![
                (RANK, rank.to_string()),
                (WORLD_SIZE, size.to_string()),
                (MASTER_ADDR, host.clone()),
                (MASTER_PORT, port.to_string()),
            ]
        };
        let others = (1..size).map(variables).collect();
        let meeting = Meeting { host: host.clone(), port, listener: Some(listener) };
        Ok((Self { rank: 0, size, local: size, local_rank: 0, engine: Engine::Tcp(meeting) }, others))
    }

    /// The only rank of its world.
    #[must_use]
    pub fn alone() -> Self {
        Self { rank: 0, size: 1, local: 1, local_rank: 0, engine: Engine::Alone }
    }
}

/// Where ranks meet whose place is said; `beside` is what it is needed for.
pub(crate) fn named_meeting(
    variable: &dyn Fn(&str) -> Option<String>,
    beside: &str,
) -> Result<Meeting, Error> {
    let host = variable(MASTER_ADDR).ok_or_else(|| missing(MASTER_ADDR, beside))?;
    let port = number(variable, MASTER_PORT)?.ok_or_else(|| missing(MASTER_PORT, beside))?;
    Ok(Meeting { host, port, listener: None })
}

/// The number that a variable begins with, such as `2(x3)`, at least 1.
fn leading(variable: &dyn Fn(&str) -> Option<String>, name: &str) -> usize {
    let text = variable(name).unwrap_or_default();
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text[..end].parse().unwrap_or(1).max(1)
}

fn missing(variable: &'static str, beside: &str) -> Error {
    let reason = format!("it is needed beside {beside}");
    Error::Variable { variable, value: String::new(), reason }
}

fn number<T: std::str::FromStr>(
    variable: &dyn Fn(&str) -> Option<String>,
    name: &'static str,
) -> Result<Option<T>, Error> {
    let wrong =
        |value| Error::Variable { variable: name, value, reason: "expected a whole number".to_owned() };
    variable(name).map(|value| value.trim().parse().map_err(|_| wrong(value))).transpose()
}

/// A rank and how many there are.
fn place(
    variable: &dyn Fn(&str) -> Option<String>,
    rank: &'static str,
    size: &'static str,
) -> Result<(usize, usize), Error> {
    let (at, count): (Option<usize>, Option<usize>) = (number(variable, rank)?, number(variable, size)?);
    let at = at.ok_or_else(|| missing(rank, size))?;
    let count = count.ok_or_else(|| missing(size, rank))?;
    // Ranks travel as 32 bits.
    if at >= count || u32::try_from(count).is_err() {
        let reason = format!("{size} is {count}");
        return Err(Error::Variable { variable: rank, value: at.to_string(), reason });
    }
    Ok((at, count))
}

/// Where the tasks of a Slurm step meet: at its first host.
fn slurm(variable: &dyn Fn(&str) -> Option<String>) -> Result<Meeting, Error> {
    const NODES: &str = "SLURM_STEP_NODELIST";
    const JOB: &str = "SLURM_JOB_ID";
    let host = match variable(MASTER_ADDR) {
        Some(host) => host,
        None => {
            let nodes = variable(NODES).ok_or_else(|| missing(NODES, "SLURM_STEP_NUM_TASKS"))?;
            let wrong = || Error::Variable {
                variable: NODES,
                value: nodes.clone(),
                reason: format!("the first host cannot be read; name it with {MASTER_ADDR}"),
            };
            first_host(&nodes).ok_or_else(wrong)?
        }
    };
    let port = match number(variable, MASTER_PORT)? {
        Some(port) => port,
        None => {
            let job: u32 = number(variable, JOB)?.ok_or_else(|| missing(JOB, "SLURM_STEP_NUM_TASKS"))?;
            u16::try_from(SLURM_PORTS.0 + job % SLURM_PORTS.1).unwrap_or(u16::MAX)
        }
    };
    Ok(Meeting { host, port, listener: None })
}

/// The first host of a list such as `gpu[07-09,12],login`.
fn first_host(list: &str) -> Option<String> {
    let end = list.find(['[', ',']).unwrap_or(list.len());
    let (name, rest) = list.split_at(end);
    let host = match rest.strip_prefix('[') {
        Some(ranges) => {
            let first = ranges.split([',', '-', ']']).next()?;
            let after = ranges.split_once(']')?.1.split(',').next()?;
            format!("{name}{first}{after}")
        }
        None => name.to_owned(),
    };
    (!host.is_empty() && !host.contains(['[', ']'])).then_some(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn world(variables: &[(&str, &str)]) -> Result<Option<World>, Error> {
        let find = |name: &str| variables.iter().find(|(known, _)| *known == name);
        World::from_variables(&|name| find(name).map(|(_, value)| (*value).to_owned()))
    }

    fn meeting(world: &World) -> (usize, usize, String, u16) {
        let Engine::Tcp(meeting) = &world.engine else { panic!("{world:?}") };
        (world.rank, world.size, meeting.host.clone(), meeting.port)
    }

    #[test]
    fn launchers_are_known_by_their_variables() {
        assert!(world(&[]).unwrap().is_none());
        let plain =
            [("RANK", "1"), ("WORLD_SIZE", "4"), ("MASTER_ADDR", "10.0.0.1"), ("MASTER_PORT", "2950")];
        let found = world(&plain).unwrap().unwrap();
        assert_eq!(meeting(&found), (1, 4, "10.0.0.1".to_owned(), 2950));
        assert_eq!(found.local_rank, 0);
        let of_torchrun = [plain.as_slice(), &[("LOCAL_RANK", "1")]].concat();
        assert_eq!(world(&of_torchrun).unwrap().unwrap().local_rank, 1);
        let open = [("OMPI_COMM_WORLD_RANK", "0"), ("OMPI_COMM_WORLD_SIZE", "2")];
        assert!(matches!(world(&open).unwrap().unwrap().engine, Engine::Mpi(MpiLibrary::OpenMpi)));
        let on_a_host = [open.as_slice(), &[("OMPI_COMM_WORLD_LOCAL_RANK", "3")]].concat();
        assert_eq!(world(&on_a_host).unwrap().unwrap().local_rank, 3);
        let hydra = [("PMI_RANK", "1"), ("PMI_SIZE", "2")];
        assert!(matches!(world(&hydra).unwrap().unwrap().engine, Engine::Mpi(MpiLibrary::Mpich)));
        let mut slurm = vec![
            ("SLURM_PROCID", "2"),
            ("SLURM_STEP_NUM_TASKS", "3"),
            ("SLURM_STEP_NODELIST", "gpu[07-09,12]"),
            ("SLURM_JOB_ID", "40001"),
        ];
        assert_eq!(meeting(&world(&slurm).unwrap().unwrap()), (2, 3, "gpu07".to_owned(), 20_001));
        slurm.push(("MASTER_ADDR", "head"));
        slurm.push(("MASTER_PORT", "5000"));
        assert_eq!(meeting(&world(&slurm).unwrap().unwrap()), (2, 3, "head".to_owned(), 5000));
        // One process is no group.
        assert!(world(&[("OMPI_COMM_WORLD_RANK", "0"), ("OMPI_COMM_WORLD_SIZE", "1")]).unwrap().is_none());
        assert!(world(&[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "8")]).unwrap().is_none(), "a batch script");
    }

    #[test]
    fn variables_that_make_no_sense_are_named() {
        let error = |variables: &[(&str, &str)]| world(variables).unwrap_err().to_string();
        assert!(error(&[("RANK", "x"), ("WORLD_SIZE", "4")]).contains("RANK=x: expected a whole number"));
        assert!(error(&[("RANK", "4"), ("WORLD_SIZE", "4")]).contains("RANK=4: WORLD_SIZE is 4"));
        assert!(error(&[("RANK", "0"), ("WORLD_SIZE", "4")]).contains("MASTER_ADDR"));
        let port = [("RANK", "0"), ("WORLD_SIZE", "2"), ("MASTER_ADDR", "h"), ("MASTER_PORT", "70000")];
        assert!(error(&port).contains("MASTER_PORT=70000"));
        let nodes = [("SLURM_PROCID", "0"), ("SLURM_STEP_NUM_TASKS", "2"), ("SLURM_STEP_NODELIST", "[")];
        assert!(error(&nodes).contains("SLURM_STEP_NODELIST=["));
    }

    #[test]
    fn the_first_host_of_a_list() {
        for (list, host) in [("a,b", "a"), ("n[1-3]", "n1"), ("n[001,004-7]x,m", "n001x"), ("a", "a")] {
            assert_eq!(first_host(list).as_deref(), Some(host), "{list}");
        }
        for list in ["", ",", "n[", "n[1-3"] {
            assert_eq!(first_host(list), None, "{list}");
        }
    }
}
