//! Which engine of collectives is wanted, whatever launcher started the ranks.

use std::fmt;
use std::str::FromStr;

use crate::launch::{Engine, named_meeting};
use crate::{Error, World};

/// An engine of collectives by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Collectives {
    /// TCP alone.
    Tcp,
    /// The MPI whose `mpirun` started the ranks.
    Mpi,
    /// UCC; the ranks find each other over TCP.
    Ucc,
    /// NCCL between the ranks' GPUs; what else they tell each other goes the way that their launcher suggests.
    Nccl,
    /// RCCL, as NCCL.
    Rccl,
}

impl Collectives {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Tcp, Self::Mpi, Self::Ucc, Self::Nccl, Self::Rccl];

    /// Whether it connects devices: gradients stay on them, and processes meet by another engine.
    #[must_use]
    pub fn is_of_devices(self) -> bool {
        matches!(self, Self::Nccl | Self::Rccl)
    }
}

impl fmt::Display for Collectives {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Tcp => "tcp",
            Self::Mpi => "mpi",
            Self::Ucc => "ucc",
            Self::Nccl => "nccl",
            Self::Rccl => "rccl",
        })
    }
}

impl FromStr for Collectives {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|one| one.to_string() == text);
        found.ok_or_else(|| "expected `tcp`, `mpi`, `ucc`, `nccl` or `rccl`".to_owned())
    }
}

impl World {
    /// The same ranks with the engine that is wanted, in the place of the one that their launcher suggests. Ranks of `mpirun` that
    /// are to meet over TCP need `MASTER_ADDR` and `MASTER_PORT`. Engines of devices leave it as it is.
    ///
    /// # Errors
    ///
    /// When the launcher does not lead to the engine.
    pub fn over(self, wanted: Collectives) -> Result<Self, Error> {
        self.over_by(wanted, &|name| std::env::var(name).ok())
    }

    /// As [`World::over`], with other variables.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn over_by(
        self,
        wanted: Collectives,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, Error> {
        let engine = match (self.engine, wanted) {
            (engine, Collectives::Nccl | Collectives::Rccl) | (engine @ Engine::Alone, _) => engine,
            (Engine::Mpi(library), Collectives::Mpi) => Engine::Mpi(library),
            (_, Collectives::Mpi) => {
                return Err(Error::Engine {
                    wanted: Collectives::Mpi,
                    reason: "only ranks that `mpirun` started have it".to_owned(),
                });
            }
            (Engine::Tcp(meeting) | Engine::Ucc(meeting), Collectives::Tcp) => Engine::Tcp(meeting),
            (Engine::Tcp(meeting) | Engine::Ucc(meeting), Collectives::Ucc) => Engine::Ucc(meeting),
            (Engine::Mpi(_), _) => {
                let meeting = named_meeting(variable, "ranks of `mpirun` that meet over TCP")?;
                if wanted == Collectives::Ucc { Engine::Ucc(meeting) } else { Engine::Tcp(meeting) }
            }
        };
        Ok(Self { engine, ..self })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MPI: [(&str, &str); 2] = [("OMPI_COMM_WORLD_RANK", "1"), ("OMPI_COMM_WORLD_SIZE", "2")];
    const MEETING: [(&str, &str); 2] = [("MASTER_ADDR", "h"), ("MASTER_PORT", "7")];
    const PLAIN: [(&str, &str); 2] = [("RANK", "1"), ("WORLD_SIZE", "2")];

    fn over(variables: &[(&str, &str)], wanted: Collectives) -> Result<Engine, Error> {
        let find = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let world = World::from_variables(&find).unwrap().unwrap();
        world.over_by(wanted, &find).map(|world| {
            assert_eq!((world.rank, world.size), (1, 2));
            world.engine
        })
    }

    #[test]
    fn ranks_of_any_launcher_can_meet_over_tcp() {
        for launcher in [MPI, PLAIN] {
            let variables = [launcher, MEETING].concat();
            for wanted in [Collectives::Tcp, Collectives::Ucc] {
                let engine = over(&variables, wanted).unwrap();
                let (Engine::Tcp(meeting) | Engine::Ucc(meeting)) = &engine else { panic!("{engine:?}") };
                assert_eq!((meeting.host.as_str(), meeting.port), ("h", 7));
                assert_eq!(matches!(engine, Engine::Ucc(_)), wanted == Collectives::Ucc);
            }
        }
        let said = over(&MPI, Collectives::Ucc).unwrap_err().to_string();
        assert!(said.contains("MASTER_ADDR"), "{said}");
    }

    #[test]
    fn engines_of_devices_leave_the_meeting_to_the_launcher() {
        for wanted in [Collectives::Nccl, Collectives::Rccl] {
            assert!(matches!(over(&MPI, wanted), Ok(Engine::Mpi(_))));
            assert!(matches!(over(&[PLAIN, MEETING].concat(), wanted), Ok(Engine::Tcp(_))));
        }
    }

    #[test]
    fn mpi_is_for_ranks_of_mpirun() {
        assert!(matches!(over(&MPI, Collectives::Mpi), Ok(Engine::Mpi(_))));
        let said = over(&[PLAIN, MEETING].concat(), Collectives::Mpi).unwrap_err().to_string();
        assert_eq!(said, "mpi: only ranks that `mpirun` started have it");
    }

    #[test]
    fn names_are_read_as_they_are_written() {
        for one in Collectives::ALL {
            assert_eq!(one.to_string().parse(), Ok(one));
        }
        assert!("gloo".parse::<Collectives>().unwrap_err().contains("`nccl`"));
    }
}
