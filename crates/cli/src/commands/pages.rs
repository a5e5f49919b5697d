//! What manual pages say beside what the arguments tell.

/// What exit codes mean.
pub(super) const EXIT_STATUS: [(&str, &str); 5] = [
    ("0", "everything passed"),
    ("1", "a check failed: a mismatch, a regression, a failed benchmark"),
    ("2", "bad usage or bad input"),
    ("3", "not possible here: no such device, library or permission, or a file that cannot be written"),
    ("4", "too little or too noisy to say"),
];

/// What the environment sets.
pub(super) const ENVIRONMENT: [(&str, &str); 12] = [
    ("XDG_CONFIG_HOME, XDG_DATA_HOME, XDG_CACHE_HOME", "where the files below are"),
    ("NO_COLOR", "no colours on a terminal"),
    ("COLUMNS", "the width that tables and text are fitted to, in place of the terminal's"),
    ("RUST_LOG", "what is logged to standard error, such as warn or warpforge_runtime=debug"),
    ("WARPFORGE_ISA", "the instructions that CPU kernels are held to: portable, avx2, avx512"),
    ("WARPFORGE_NUM_THREADS", "the most threads of CPU kernels where --threads is not given"),
    ("WARPFORGE_TUNING", "whether GPU kernels are chosen by trying them: on or off"),
    ("WARPFORGE_COLLECTIVES", "how several ranks talk to each other: tcp, mpi, ucc, nccl or rccl"),
    ("WARPFORGE_PYTHON", "the Python with PyTorch that golden record starts"),
    ("CUDA_VISIBLE_DEVICES, HIP_VISIBLE_DEVICES", "the GPUs that are seen"),
    ("WARPT_DURATION, WARPT_ROUNDS, WARPT_BURNIN_SECONDS", "defaults of benchmark run"),
    ("GITHUB_STEP_SUMMARY", "the file that validate --summary adds to"),
];

/// The files that the program has.
pub(super) const FILES: [(&str, &str); 5] = [
    (
        "$XDG_CONFIG_HOME/warpt/config.toml",
        "defaults of options, below the environment and flags: tables are named as commands, keys as long options, \
         such as rounds = 7 under [benchmark.run]; else ~/.config/warpt/config.toml",
    ),
    ("$XDG_DATA_HOME/warpt/history.sqlite", "the runs that were kept; else ~/.local/share/warpt"),
    ("$XDG_DATA_HOME/warpt/machine.json", "what calibrate measured; machine-cuda-0.json for a GPU"),
    ("$XDG_DATA_HOME/warpt/carbon", "what carbon run --keep kept"),
    ("$XDG_CACHE_HOME/warpt/kernels", "compiled GPU kernels; else ~/.cache/warpt"),
];

/// Examples, by the page that they are on.
pub(super) const EXAMPLES: [(&str, &str, &str); 45] = [
    ("warpt", "warpt list", "What is this machine made of?"),
    ("warpt", "warpt run model.pt2 --seed 1 --repeat 20", "How fast is a model on it?"),
    ("warpt-list", "warpt list --json > machine.json", "The inventory for programs."),
    ("warpt-monitor", "warpt monitor --json", "A line of JSON a second."),
    (
        "warpt-stress",
        "warpt stress cpu ram --duration 600",
        "Ten minutes of each test of processors and memory.",
    ),
    (
        "warpt-stress",
        "warpt stress network --target node7:5210 --test point-to-point",
        "The link to a host that runs `warpt serve`.",
    ),
    (
        "warpt-microbench",
        "warpt microbench --config layers.yml --recommend --min-sqnr 30",
        "The fastest recipe of quantized weights that is accurate enough.",
    ),
    ("warpt-power", "warpt power -- make -j8", "What a command uses from its start to its end."),
    (
        "warpt-carbon-run",
        "warpt carbon run --grid FRA --keep -- python train.py",
        "Energy and carbon of a command, kept.",
    ),
    ("warpt-benchmark-run", "warpt benchmark run --suite micro", "Every benchmark of a suite."),
    (
        "warpt-benchmark-run",
        "warpt benchmark run --benchmark cpu_flops --param dtypes=f32",
        "One benchmark, with a parameter.",
    ),
    (
        "warpt-benchmark-run",
        "warpt benchmark run --benchmark llm_decode --param model=model.gguf --param type=bf16",
        "Tokens a second of a language model.",
    ),
    (
        "warpt-benchmark-score",
        "warpt benchmark score latest --baseline fleet.json",
        "One number: how fast, with the baseline as 1.",
    ),
    (
        "warpt-benchmark-fleet",
        "warpt benchmark fleet node*.json --baseline fleet.json",
        "Which machines are not as fast as the others? Their medians are kept.",
    ),
    (
        "warpt-benchmark-compare",
        "warpt benchmark compare latest~1 latest --fail-on-regression",
        "Fail where the last run is slower than the one before it.",
    ),
    ("warpt-benchmark-history", "warpt benchmark history trend cpu_flops gflops", "One metric over time."),
    ("warpt-check", "cat model.mlir | warpt check -", "Verify a model from a pipe."),
    (
        "warpt-opt",
        "warpt opt model.pt2 --emit bytecode -o model.mlir.bc",
        "A portable artifact, weights included.",
    ),
    (
        "warpt-import",
        "warpt import model.pt2 -o model.mlir --weights model.safetensors",
        "A model as text, its weights in a file of their own.",
    ),
    (
        "warpt-run",
        "warpt run model.pt2 --inputs in.safetensors --outputs out.safetensors",
        "Run on given inputs and keep the outputs.",
    ),
    (
        "warpt-run",
        "warpt run model.pt2 --seed 1 --warmup 3 --repeat 20",
        "Twenty timed runs after three others.",
    ),
    (
        "warpt-run",
        "warpt run model.pt2 --seed 1 --threads 1,2,4 --precision model,bf16 --format markdown",
        "A sweep: every combination is a row of one table.",
    ),
    (
        "warpt-validate",
        "warpt validate --golden model.golden --candidate candidate",
        "Judge a run by one of PyTorch; a mismatch is exit code 1.",
    ),
    ("warpt-benchmark", "warpt benchmark run --component cpu,ram", "Measure processors and memory."),
    (
        "warpt-benchmark-list",
        "warpt benchmark list --component storage",
        "The benchmarks of a part of the machine.",
    ),
    (
        "warpt-benchmark-describe",
        "warpt benchmark describe --benchmark disk_io",
        "What it measures, and its parameters.",
    ),
    ("warpt-benchmark-history-list", "warpt benchmark history list --limit 5", "The last five runs."),
    (
        "warpt-benchmark-history-show",
        "warpt benchmark history show latest --json",
        "The whole record of the last run.",
    ),
    (
        "warpt-benchmark-history-trend",
        "warpt benchmark history trend cpu_flops gflops --tag scope=one_core",
        "One metric over time.",
    ),
    ("warpt-calibrate", "warpt calibrate --quick", "What this machine does, in a minute or two."),
    ("warpt-calibrate-show", "warpt calibrate show", "The profile of this machine again."),
    ("warpt-calibrate-plot", "warpt calibrate plot -o roofline.svg", "Its roofline as a picture."),
    (
        "warpt-calibrate-check",
        "warpt calibrate check model.pt2",
        "How far predictions are from what a model takes.",
    ),
    ("warpt-carbon", "warpt carbon run --grid FRA -- python train.py", "Energy and carbon of a command."),
    ("warpt-carbon-grids", "warpt carbon grids", "The grids there are, with publisher and year."),
    ("warpt-carbon-history", "warpt carbon history --limit 5", "The last five commands that were kept."),
    ("warpt-carbon-summary", "warpt carbon summary", "All that was kept, added up."),
    ("warpt-serve", "warpt serve --listen 0.0.0.0:5210", "Answer the network benchmarks of other hosts."),
    ("warpt-golden", "warpt golden list", "The benchmarks there are, with their presets."),
    ("warpt-golden-list", "warpt golden list --json", "The same for programs."),
    (
        "warpt-golden-record",
        "warpt golden record bert-squad --preset tiny --out golden",
        "PyTorch's half: train and keep everything.",
    ),
    (
        "warpt-golden-run",
        "warpt golden run bert-squad --compare-golden golden --out ours",
        "Ours: the same training, compared step by step.",
    ),
    (
        "warpt-conformance",
        "warpt conformance stablehlo/tests/interpret",
        "Which of the project's tests hold.",
    ),
    ("warpt-completions", "warpt completions bash > warpt.bash", "A script for the shell to source."),
    ("warpt-man", "warpt man pages", "A folder of pages; `man pages/warpt.1` shows one."),
];
