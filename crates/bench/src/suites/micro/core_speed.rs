//! How fast the cores of a team run while it works.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use warpforge_measure::{Timing, core_speed};
use warpforge_probes::team::Team;

/// Does work on a team and returns the time it took and how fast its cores ran just before and after.
pub(super) fn on_team(team: &mut Team, work: impl FnOnce(&mut Team) -> Duration) -> Timing {
    let before = slowest(team);
    let time = work(team);
    Timing { time, core_speed: Some(f64::midpoint(before, slowest(team))) }
}

/// The speed of the team's slowest core, which is the one the others wait for.
fn slowest(team: &mut Team) -> f64 {
    let speeds: Vec<AtomicU64> = (0..team.size()).map(|_| AtomicU64::default()).collect();
    team.run(|rank| speeds[rank].store(core_speed().to_bits(), Ordering::Relaxed));
    speeds.iter().map(|speed| f64::from_bits(speed.load(Ordering::Relaxed))).fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_work_is_done_and_the_speed_is_some() {
        let cpus = warpforge_probes::affinity::allowed().unwrap();
        let mut team = Team::new(&cpus).unwrap();
        let timing = on_team(&mut team, |_| Duration::from_secs(3));
        assert_eq!(timing.time, Duration::from_secs(3));
        assert!(timing.core_speed.is_some_and(|speed| speed > 0.0 && speed.is_finite()), "{timing:?}");
    }
}
