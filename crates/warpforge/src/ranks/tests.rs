//! Ranks as threads, whose devices are made up.

use std::any::Any;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use warpforge_collective::World;
use warpforge_runtime::ErrorKind;

use super::*;
use crate::{CompileOptions, Inputs, Model};

/// What happens to the group of a device.
#[derive(Debug, Default)]
struct Log(Mutex<Vec<String>>);

impl Log {
    fn note(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }

    fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

#[derive(Debug, Clone)]
struct FakeDevice {
    version: &'static str,
    device: Option<&'static str>,
    log: Arc<Log>,
    /// Whether it waits for other ranks until it is told that they will not come.
    waits: bool,
    fails: bool,
}

impl FakeDevice {
    fn new(device: &'static str) -> Self {
        let log = Arc::default();
        Self { version: "2.28.3", device: Some(device), log, waits: false, fails: false }
    }
}

#[derive(Debug)]
struct FakeGroup(Arc<Log>);

impl DeviceGroup for FakeGroup {
    fn abort(&self, reason: &str) {
        self.0.note(format!("abort: {reason}"));
    }

    fn finish(&self) {
        self.0.note("finish");
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn failed(reason: &str) -> warpforge_runtime::Error {
    ErrorKind::Failed { backend: "cuda", reason: reason.to_owned() }.into()
}

impl DeviceCollectives for FakeDevice {
    fn version(&self) -> String {
        self.version.to_owned()
    }

    fn device(&self) -> Option<String> {
        self.device.map(str::to_owned)
    }

    fn new_id(&self) -> warpforge_runtime::Result<Vec<u8>> {
        if self.fails { Err(failed("no id")) } else { Ok(vec![1, 2, 3]) }
    }

    fn connect(
        &self,
        id: &[u8],
        RankPlace { rank, size }: RankPlace,
        gone: &dyn Fn() -> Option<String>,
    ) -> warpforge_runtime::Result<Arc<dyn DeviceGroup>> {
        self.log.note(format!("rank {rank} of {size} with {id:?}"));
        if self.waits {
            loop {
                if let Some(reason) = gone() {
                    return Err(failed(&reason));
                }
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        Ok(Arc::new(FakeGroup(Arc::clone(&self.log))))
    }
}

fn communicators(size: usize) -> Vec<Arc<Communicator>> {
    if size == 1 {
        return vec![Arc::new(Communicator::open(World::alone(), Arc::new(|_| {})).unwrap())];
    }
    let (first, others) = World::parent(size).unwrap();
    let of = |variables: Vec<(&'static str, String)>| {
        let find = |name: &str| variables.iter().find(|(known, _)| *known == name);
        World::from_variables(&|name| find(name).map(|(_, value)| value.clone())).unwrap().unwrap()
    };
    let worlds = std::iter::once(first).chain(others.into_iter().map(of));
    let open = |world| std::thread::spawn(|| Communicator::open(world, Arc::new(|_| {})).unwrap());
    let threads: Vec<_> = worlds.map(open).collect();
    threads.into_iter().map(|thread| Arc::new(thread.join().unwrap())).collect()
}

/// What a rank has: the engine of its device, and the device or why it cannot be used.
type Has = Option<(&'static str, std::result::Result<FakeDevice, &'static str>)>;

fn agree(
    communicator: Arc<Communicator>,
    wanted: Option<Collectives>,
    has: Has,
) -> std::result::Result<RankGroup, String> {
    let offered = has.map(|(engine, device)| {
        let device = device.map(|device| Box::new(device) as Box<dyn DeviceCollectives>).map_err(failed);
        (engine, device)
    });
    RankGroup::agree(communicator, Device::Cuda(0), wanted, offered).map_err(|error| error.to_string())
}

/// What ranks that have this agree on.
fn agreed(ranks: Vec<(Option<Collectives>, Has)>) -> Vec<std::result::Result<RankGroup, String>> {
    let start = |(communicator, (wanted, has))| std::thread::spawn(move || agree(communicator, wanted, has));
    let threads: Vec<_> = communicators(ranks.len()).into_iter().zip(ranks).map(start).collect();
    threads.into_iter().map(|thread| thread.join().unwrap()).collect()
}

fn nccl(device: &'static str) -> Has {
    Some(("NCCL", Ok(FakeDevice::new(device))))
}

#[test]
fn devices_connect_where_all_ranks_can() {
    for wanted in [None, Some(Collectives::Nccl)] {
        let devices = [FakeDevice::new("a"), FakeDevice::new("b")];
        let ranks = devices.clone().map(|device| (wanted, Some(("NCCL", Ok(device)))));
        let groups = agreed(ranks.into());
        for group in groups.iter().map(|group| group.as_ref().unwrap()) {
            assert_eq!((group.engine(), group.why_on_host()), ("NCCL", None));
        }
        std::thread::scope(|scope| {
            let finish = |group: &RankGroup| group.clone().finish().unwrap();
            let all = groups.iter().map(|group| scope.spawn(move || finish(group.as_ref().unwrap())));
            all.collect::<Vec<_>>().into_iter().for_each(|thread| thread.join().unwrap());
        });
        for (rank, device) in devices.iter().enumerate() {
            // The first bytes are those of the id that rank 0 made.
            let connected = format!("rank {rank} of 2 with [1, 2, 3]");
            assert_eq!(device.log.all(), [connected, "finish".to_owned()]);
        }
    }
}

#[test]
fn ranks_that_cannot_have_an_engine_are_told_why() {
    let with = |version, device| Some(("NCCL", Ok(FakeDevice { version, device, ..FakeDevice::new("b") })));
    for (other, reason) in [
        (nccl("a"), "ranks 0 and 1 are on the same GPU, a"),
        (None, "rank 1 is not on a GPU"),
        (Some(("RCCL", Ok(FakeDevice::new("b")))), "GPUs of two vendors: rank 0 has NCCL, rank 1 RCCL"),
        (
            Some(("NCCL", Err("no NCCL here: tried libnccl.so.2"))),
            "rank 1: cuda: no NCCL here: tried libnccl.so.2",
        ),
        (with("2.27.0", Some("b")), "rank 0 has NCCL 2.28.3, rank 1 2.27.0"),
        (with("2.28.3", None), "rank 1: its driver does not say which GPU it is on"),
    ] {
        let ranks = |wanted| vec![(wanted, nccl("a")), (wanted, other.clone())];
        for group in agreed(ranks(None)) {
            let group = group.unwrap();
            assert_eq!((group.engine(), group.why_on_host()), ("tcp", Some(reason)));
        }
        for group in agreed(ranks(Some(Collectives::Nccl))) {
            assert_eq!(group.unwrap_err(), format!("nccl: {reason}"));
        }
        for group in agreed(ranks(Some(Collectives::Tcp))) {
            let group = group.unwrap();
            assert_eq!((group.engine(), group.why_on_host()), ("tcp", None));
        }
    }
    let said = agreed(vec![(Some(Collectives::Rccl), nccl("a"))]);
    assert_eq!(said[0].as_ref().unwrap_err(), "rccl: the GPUs of the ranks have NCCL");
    for group in agreed(vec![(None, None), (None, None)]) {
        let group = group.unwrap();
        assert_eq!((group.engine(), group.why_on_host()), ("tcp", None));
    }
}

#[test]
fn ranks_want_one_engine() {
    let wanted = [Some(Collectives::Nccl), Some(Collectives::Tcp)];
    for said in agreed(wanted.into_iter().zip([nccl("a"), nccl("b")]).collect()) {
        let expected = "tcp: rank 1 asks for tcp, rank 0 for nccl; all ranks have the same engine";
        assert_eq!(said.unwrap_err(), expected);
    }
    for said in agreed(vec![(Some(Collectives::Nccl), nccl("a")), (None, nccl("b"))]) {
        let expected = "nccl: rank 1 asks for none, rank 0 for nccl; all ranks have the same engine";
        assert_eq!(said.unwrap_err(), expected);
    }
}

#[test]
fn a_rank_that_is_gone_aborts_the_devices_of_others() {
    let device = FakeDevice::new("a");
    let mut groups = agreed(vec![(None, Some(("NCCL", Ok(device.clone())))), (None, nccl("b"))]);
    let begin = Instant::now();
    drop(groups.pop());
    let aborted = |line: &String| line.starts_with("abort: rank 1 is gone");
    while !device.log.all().iter().any(aborted) {
        assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", device.log.all());
        std::thread::sleep(Duration::from_millis(10));
    }
    let group = groups[0].as_ref().unwrap();
    assert!(matches!(group.communicator().failure(), Some(GroupError::Lost { rank: 1, .. })));
}

#[test]
fn a_rank_that_cannot_connect_ends_the_wait_of_others() {
    // Rank 0 makes no id.
    let fails = FakeDevice { fails: true, ..FakeDevice::new("a") };
    let said = agreed(vec![(None, Some(("NCCL", Ok(fails)))), (None, nccl("b"))]);
    assert_eq!(said[0].as_ref().unwrap_err(), "cuda: no id");
    assert_eq!(said[1].as_ref().unwrap_err(), "rank 0 is gone: cuda: no id");
    // Rank 1 goes while rank 0 waits for it.
    let mut ranks = communicators(2).into_iter();
    let (first, second) = (ranks.next().unwrap(), ranks.next().unwrap());
    let other = std::thread::spawn(move || drop(agree(second, None, nccl("b"))));
    let waits = FakeDevice { waits: true, ..FakeDevice::new("a") };
    let said = agree(first, None, Some(("NCCL", Ok(waits)))).unwrap_err();
    assert!(said.contains("rank 1 is gone"), "{said}");
    other.join().unwrap();
}

#[test]
fn a_step_of_devices_is_not_made_by_a_host() {
    let text = r#"func.func @main(
        %w: tensor<3xf32> {warpforge.name = "w", warpforge.role = "parameter"},
        %x: tensor<3xf32> {warpforge.name = "x"})
        -> (tensor<3xf32> {warpforge.name = "grad.w", warpforge.role = "gradient", warpforge.of = "w"}) {
      %0 = stablehlo.add %x, %x : tensor<3xf32>
      func.return %0 : tensor<3xf32>
    }"#;
    let communicator = Arc::new(Communicator::open(World::alone(), Arc::new(|_| {})).unwrap());
    let group = agree(communicator, Some(Collectives::Nccl), nccl("a")).unwrap();
    let mut model = Model::from_text("m.mlir", text).unwrap();
    let ones = crate::Tensor::from_slice(&[3], &[1.0f32; 3]).unwrap();
    model.bind_weights(&[("w".to_owned(), ones.clone())].into()).unwrap();
    let step = model.train_in_group(&"sgd,lr=1".parse().unwrap(), &group, 1 << 20).unwrap();
    let compiled = step.compile_with_state(&CompileOptions::default(), Inputs::new()).unwrap();
    let said = compiled.run([("x", ones)]).unwrap_err().to_string();
    assert!(said.contains("the ranks are connected on cuda:0; compile the step for it"), "{said}");
}

#[test]
fn messages_are_read_with_care() {
    let offer = Offer { wanted: "nccl".to_owned(), reason: "x".repeat(5000), ..Offer::default() };
    let read = Offer::read(&offer.message()).unwrap();
    assert_eq!((read.wanted.as_str(), read.reason.len()), ("nccl", MESSAGE - 4 - 5 * 2));
    assert_eq!(Offer::read(&[]), None);
    assert_eq!(Offer::read(&[255; MESSAGE]), None);
    assert_eq!(Offer::read(&[0; MESSAGE]), Some(Offer::default()));
}
