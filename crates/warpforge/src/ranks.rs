//! The ranks that train a model together, and what their gradients travel by: the hosts, or their GPUs.
//!
//! Whether GPUs can is decided by all ranks alike: each tells all others what it has, and each judges the same list.

use std::sync::Arc;

use warpforge_collective::{Collectives, Communicator, Error as GroupError};
use warpforge_runtime::{Device, DeviceCollectives, DeviceGroup, RankPlace};

use crate::backends::backends;
use crate::{Error, Result};

/// Bytes of a message between ranks, whatever is in it.
const MESSAGE: usize = 2048;

/// Ranks that train one model. Cheap to clone.
#[derive(Debug, Clone)]
pub struct RankGroup {
    communicator: Arc<Communicator>,
    device: Option<Connected>,
    why_on_host: Option<String>,
}

/// The device of this rank, connected to those of the others.
#[derive(Debug, Clone)]
struct Connected {
    device: Device,
    engine: &'static str,
    group: Arc<dyn DeviceGroup>,
}

/// What a rank's device has to connect with, and why it has not.
type Offered = Option<(&'static str, warpforge_runtime::Result<Box<dyn DeviceCollectives>>)>;

impl RankGroup {
    /// Ranks whose gradients travel as their processes do.
    #[must_use]
    pub fn on_hosts(communicator: Arc<Communicator>) -> Self {
        Self { communicator, device: None, why_on_host: None }
    }

    /// Ranks whose gradients stay on their devices, by NCCL or RCCL, where all of them can and nothing else is wanted. All ranks call
    /// this, each for its device.
    ///
    /// # Errors
    ///
    /// When NCCL or RCCL is wanted and the ranks cannot have it, with the reason; when it cannot connect them though they could; when
    /// ranks want different engines; or when a rank is gone.
    pub fn connect(
        communicator: Arc<Communicator>,
        device: Device,
        wanted: Option<Collectives>,
    ) -> Result<Self> {
        let of_hosts = wanted.is_some_and(|wanted| !wanted.is_of_devices());
        let backend = backends().iter().find(|backend| backend.serves(device)).filter(|_| !of_hosts);
        let offered =
            backend.and_then(|backend| Some((backend.device_engine()?, backend.device_collectives(device))));
        Self::agree(communicator, device, wanted, offered)
    }

    fn agree(
        communicator: Arc<Communicator>,
        device: Device,
        wanted: Option<Collectives>,
        offered: Offered,
    ) -> Result<Self> {
        let offers = exchange(&communicator, &Offer::new(wanted, offered.as_ref()))?;
        let verdict = judge(&offers).inspect_err(|_| {
            // All ranks refuse together: one that leaves first is not lost to those that still listen. Why they refuse is what is said.
            let _ = communicator.finish();
        })?;
        let (engine, own) = match (verdict, offered) {
            (Verdict::Devices, Some((engine, own))) => (engine, own?),
            (Verdict::Devices, None) => return Ok(Self::on_hosts(communicator)),
            (Verdict::Hosts(why_on_host), _) => return Ok(Self { communicator, device: None, why_on_host }),
        };
        let group = meet(&communicator, own.as_ref())?;
        let held = Arc::downgrade(&group);
        communicator.on_failure(move |error| {
            if let Some(group) = held.upgrade() {
                group.abort(&error.to_string());
            }
        });
        Ok(Self { communicator, device: Some(Connected { device, engine, group }), why_on_host: None })
    }

    /// What their processes say to each other.
    #[must_use]
    pub fn communicator(&self) -> &Communicator {
        &self.communicator
    }

    /// The same, to be held.
    pub(crate) fn shared(&self) -> &Arc<Communicator> {
        &self.communicator
    }

    /// The name of the engine that gradients travel by.
    #[must_use]
    pub fn engine(&self) -> &'static str {
        self.device.as_ref().map_or_else(|| self.communicator.engine(), |connected| connected.engine)
    }

    /// Why gradients cross the hosts, where some ranks are on GPUs and nothing was asked for.
    #[must_use]
    pub fn why_on_host(&self) -> Option<&str> {
        self.why_on_host.as_deref()
    }

    /// The device that averages gradients, and its group.
    pub(crate) fn on_device(&self) -> Option<(Device, &Arc<dyn DeviceGroup>)> {
        self.device.as_ref().map(|connected| (connected.device, &connected.group))
    }

    /// Leaves the group in peace, when all ranks are done with their models.
    ///
    /// # Errors
    ///
    /// When the engine cannot.
    pub fn finish(&self) -> Result<()> {
        self.communicator.finish()?;
        if let Some(connected) = &self.device {
            connected.group.finish();
        }
        Ok(())
    }
}

/// What a rank says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Offer {
    /// The engine that is asked for; empty for none.
    wanted: String,
    /// The engine of its device; empty where that has none.
    engine: String,
    /// The version of the engine; empty where it cannot be used.
    version: String,
    /// What tells the device from others; empty where nobody knows.
    device: String,
    /// Why the engine cannot be used.
    reason: String,
}

impl Offer {
    fn new(
        wanted: Option<Collectives>,
        offered: Option<&(&'static str, warpforge_runtime::Result<Box<dyn DeviceCollectives>>)>,
    ) -> Self {
        let wanted = wanted.map_or_else(String::new, |wanted| wanted.to_string());
        let Some((engine, own)) = offered else { return Self { wanted, ..Self::default() } };
        let engine = (*engine).to_owned();
        match own {
            Ok(own) => {
                let device = own.device().unwrap_or_default();
                Self { wanted, engine, version: own.version(), device, reason: String::new() }
            }
            Err(error) => Self { wanted, engine, reason: error.to_string(), ..Self::default() },
        }
    }

    fn message(&self) -> Vec<u8> {
        let Self { wanted, engine, version, device, reason } = self;
        message([wanted, engine, version, device, reason].map(String::as_bytes))
    }

    fn read(message: &[u8]) -> Option<Self> {
        let text = |part: &[u8]| String::from_utf8_lossy(part).into_owned();
        let [wanted, engine, version, device, reason] = parts(message)?.map(text);
        Some(Self { wanted, engine, version, device, reason })
    }
}

/// Parts in a message, each with its size before it; the last is cut where there is no room.
fn message<const N: usize>(parts: [&[u8]; N]) -> Vec<u8> {
    let mut message = Vec::with_capacity(MESSAGE);
    for part in parts {
        let room = MESSAGE.saturating_sub(message.len() + 2);
        let part = &part[..part.len().min(room)];
        message.extend_from_slice(&(part.len() as u16).to_le_bytes());
        message.extend_from_slice(part);
    }
    message.resize(MESSAGE, 0);
    message
}

/// The parts of a message; `None` where it is none.
fn parts<const N: usize>(mut message: &[u8]) -> Option<[&[u8]; N]> {
    let mut parts = [[].as_slice(); N];
    for part in &mut parts {
        let (size, rest) = message.split_first_chunk()?;
        (*part, message) = rest.split_at_checked(usize::from(u16::from_le_bytes(*size)))?;
    }
    Some(parts)
}

/// The offers of all ranks.
fn exchange(communicator: &Communicator, own: &Offer) -> Result<Vec<Offer>> {
    let mut offers = Vec::new();
    for rank in 0..communicator.size() {
        let said = communicator.broadcast(own.message(), rank)?;
        offers.push(Offer::read(&said).ok_or_else(|| GroupError::Apart {
            rank,
            expected: "what it connects with".to_owned(),
            found: "something else".to_owned(),
        })?);
    }
    Ok(offers)
}

/// What gradients travel by.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Verdict {
    /// Devices, which are connected.
    Devices,
    /// Hosts, and why, where that is not what was asked for.
    Hosts(Option<String>),
}

/// What gradients travel by: the same for all ranks, which have the same offers.
fn judge(offers: &[Offer]) -> Result<Verdict> {
    let first = offers.first().cloned().unwrap_or_default();
    let wanted = |offer: &Offer| offer.wanted.parse::<Collectives>().ok();
    let refused = |wanted, reason| Err(GroupError::Engine { wanted, reason }.into());
    if let Some((rank, other)) = offers.iter().enumerate().find(|(_, offer)| offer.wanted != first.wanted) {
        let name = |offer: &Offer| match offer.wanted.as_str() {
            "" => "for none".to_owned(),
            wanted => format!("for {wanted}"),
        };
        let reason = format!(
            "rank {rank} asks {}, rank 0 {}; all ranks have the same engine",
            name(other),
            name(&first)
        );
        return refused(wanted(other).or(wanted(&first)).unwrap_or(Collectives::Tcp), reason);
    }
    match (wanted(&first), obstacle(offers)) {
        (Some(wanted), _) if !wanted.is_of_devices() => Ok(Verdict::Hosts(None)),
        (Some(wanted), None) if wanted.to_string() != first.engine.to_lowercase() => {
            refused(wanted, format!("the GPUs of the ranks have {}", first.engine))
        }
        (_, None) => Ok(Verdict::Devices),
        (Some(wanted), Some(reason)) => refused(wanted, reason),
        (None, Some(_)) if offers.iter().all(|offer| offer.engine.is_empty()) => Ok(Verdict::Hosts(None)),
        (None, Some(reason)) => Ok(Verdict::Hosts(Some(reason))),
    }
}

/// Why devices cannot connect the ranks.
fn obstacle(offers: &[Offer]) -> Option<String> {
    let first = offers.first()?;
    for (rank, offer) in offers.iter().enumerate() {
        let Offer { engine, version, device, reason, .. } = offer;
        if engine.is_empty() {
            return Some(format!("rank {rank} is not on a GPU"));
        }
        if *engine != first.engine {
            let other = &first.engine;
            return Some(format!("GPUs of two vendors: rank 0 has {other}, rank {rank} {engine}"));
        }
        if !reason.is_empty() {
            return Some(format!("rank {rank}: {reason}"));
        }
        if *version != first.version {
            let other = &first.version;
            return Some(format!("rank 0 has {engine} {other}, rank {rank} {version}"));
        }
        if device.is_empty() && offers.len() > 1 {
            return Some(format!("rank {rank}: its driver does not say which GPU it is on"));
        }
        if let Some(twin) = offers[..rank].iter().position(|other| other.device == *device) {
            return Some(format!("ranks {twin} and {rank} are on the same GPU, {device}"));
        }
    }
    None
}

/// Connects this rank's device with those of the others.
fn meet(communicator: &Communicator, own: &dyn DeviceCollectives) -> Result<Arc<dyn DeviceGroup>> {
    let place = RankPlace { rank: communicator.rank(), size: communicator.size() };
    let made = if place.rank == 0 { own.new_id() } else { Ok(Vec::new()) };
    let said = match &made {
        Ok(id) => message([id.as_slice(), &[]]),
        Err(error) => message([&[], error.to_string().as_bytes()]),
    };
    let said = communicator.broadcast(said, 0)?;
    let [id, reason] = parts(&said).unwrap_or_default();
    made?;
    if id.is_empty() {
        let reason = String::from_utf8_lossy(reason).into_owned();
        return Err(GroupError::Lost { rank: 0, reason }.into());
    }
    let failed = || communicator.failure().map(|error| error.to_string());
    own.connect(id, place, &failed).map_err(|error| match communicator.failure() {
        Some(failure) => Error::Ranks(failure),
        None => error.into(),
    })
}

#[cfg(test)]
mod tests;
