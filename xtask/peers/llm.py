"""Language models beside ours, on the same weights, and tokenizers on the same text.

llm.py convert FROM.gguf TO.gguf f32|bf16|q8_0|q4_0  the weights of FROM in another type
llm.py llama_cpp MODEL.gguf prefill|decode TOKENS THREADS SECONDS
llm.py truth MODEL.gguf PROMPT TOKENS           greedy tokens of transformers in f32
llm.py text TO.txt                              paragraphs of English, one in a line
llm.py ids TOKENIZER TEXT.txt TO.inp            the ids of each line into TO.out
llm.py tokenizers TOKENIZER TEXT.txt SECONDS    a GGUF file or a folder with tokenizer.json, by one thread
"""

import importlib
import json
import os
import sys
import time
from pathlib import Path

import english
import gguf
import numpy


def convert(source: str, target: str, kind: str) -> None:
    """Write all matrices of a file in another type; values that describe the model and norms stay as they are."""
    reader = gguf.GGUFReader(source)
    writer = gguf.GGUFWriter(target, "llama")
    for name, field in reader.fields.items():
        if name.startswith("GGUF.") or name in ("general.architecture", "general.file_type"):
            continue
        kinds = list(field.types)
        inner = kinds[-1] if kinds[0] == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(name, field.contents(), kinds[0], sub_type=inner)
    for tensor in reader.tensors:
        values = gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(numpy.float32)
        if kind != "f32" and values.ndim > 1:
            stored_type = gguf.GGMLQuantizationType[kind.upper()]
            writer.add_tensor(tensor.name, gguf.quants.quantize(values, stored_type), raw_dtype=stored_type)
        else:
            writer.add_tensor(tensor.name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def llama_cpp(path: str, what: str, tokens: int, threads: int, seconds: float) -> dict:
    """Tokens per second of llama.cpp, called as llama-bench calls it: no tokenizer, and the largest logit is next."""
    lib = importlib.import_module("llama_cpp")
    lib.llama_backend_init()

    @lib.llama_log_callback
    def quiet(_level: int, _text: bytes, _data: object) -> None:
        """Say nothing."""

    lib.llama_log_set(quiet, None)
    options = lib.llama_model_default_params()
    options.n_gpu_layers = 0
    model = lib.llama_model_load_from_file(path.encode(), options)
    words = lib.llama_vocab_n_tokens(lib.llama_model_get_vocab(model))
    settings = lib.llama_context_default_params()
    settings.n_ctx = settings.n_batch = settings.n_ubatch = max(512, tokens)
    settings.n_threads = settings.n_threads_batch = threads
    context = lib.llama_init_from_model(model, settings)
    memory = lib.llama_get_memory(context)
    random = numpy.random.default_rng(1)

    def feed(ids: list[int]) -> int:
        array = (lib.llama_token * len(ids))(*ids)
        if lib.llama_decode(context, lib.llama_batch_get_one(array, len(ids))) != 0:
            sys.exit("llama_decode failed")
        logits = numpy.ctypeslib.as_array(lib.llama_get_logits_ith(context, -1), (words,))
        return int(logits.argmax())

    prompt = [int(token) for token in random.integers(0, words, tokens)]

    def once() -> float:
        lib.llama_memory_clear(memory, True)
        began = time.perf_counter()
        if what == "prefill":
            feed(prompt)
        else:
            token = prompt[0]
            for _ in range(tokens):
                token = feed([token])
        return tokens / (time.perf_counter() - began)

    once()
    rates, began = [], time.perf_counter()
    while not rates or time.perf_counter() - began < seconds:
        rates.append(once())
    return {"tokens_per_second": float(numpy.median(rates)), "runs": len(rates)}


def truth(path: str, prompt: int, tokens: int) -> dict:
    """Greedy tokens of transformers in f32, on the dequantized weights."""
    torch = importlib.import_module("torch")
    transformers = importlib.import_module("transformers")
    folder, name = Path(path).parent, Path(path).name
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, gguf_file=name, dtype=torch.float32)
    random = numpy.random.default_rng(7)
    ids = [int(token) for token in random.integers(0, model.config.vocab_size, prompt)]
    with torch.inference_mode():
        found = model.generate(torch.tensor([ids]), max_new_tokens=tokens, min_new_tokens=tokens, do_sample=False)
    return {
        "prompt": ids,
        "tokens": found[0, prompt:].tolist(),
        "by": f"transformers {transformers.__version__}, torch {torch.__version__}, f32",
    }


def text(target: str) -> None:
    """Write the topics of Python's help."""
    Path(target).write_text("".join(f"{part}\n" for part in english.paragraphs()), encoding="utf-8")


def tokenizer_of(path: str) -> object:
    """Return the tokenizer of a GGUF file by transformers, or of a folder."""
    if path.endswith(".gguf"):
        transformers = importlib.import_module("transformers")
        file = Path(path)
        return transformers.AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name).backend_tokenizer
    tokenizer = importlib.import_module("tokenizers").Tokenizer.from_file(str(Path(path) / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def lines_of(path: str) -> list[str]:
    """Return the lines of a text that are not empty, as our benchmark takes them."""
    lines = (line.strip() for line in Path(path).read_text(encoding="utf-8").split("\n"))
    return [line for line in lines if line]


def ids(path: str, source: str, target: str) -> None:
    """Write the ids of each line as llama.cpp's truth files have them."""
    lines = lines_of(source)
    encodings = tokenizer_of(path).encode_batch(lines, add_special_tokens=False)
    Path(target).write_text("".join(f"{line}\n__ggml_vocab_test__\n" for line in lines), encoding="utf-8")
    rows = (" ".join(map(str, encoding.ids)) for encoding in encodings)
    Path(target).with_suffix(".out").write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")


def tokenizers(path: str, source: str, seconds: float) -> dict:
    """Megabytes per second of the package tokenizers by one thread, the faster of its two calls for many texts."""
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    tokenizer, lines = tokenizer_of(path), lines_of(source)
    size = sum(len(line.encode()) for line in lines) / 1e6
    best = 0.0
    for encode in (tokenizer.encode_batch, tokenizer.encode_batch_fast):
        encode(lines)
        rates, began = [], time.perf_counter()
        while not rates or time.perf_counter() - began < seconds:
            start = time.perf_counter()
            encode(lines)
            rates.append(size / (time.perf_counter() - start))
        best = max(best, float(numpy.median(rates)))
    return {"megabytes_per_second": best, "version": importlib.import_module("tokenizers").__version__}


def main() -> None:
    """Do what the first argument says."""
    match sys.argv[1:]:
        case ["convert", source, target, kind]:
            convert(source, target, kind)
        case ["llama_cpp", path, what, tokens, threads, seconds]:
            print(json.dumps(llama_cpp(path, what, int(tokens), int(threads), float(seconds))))
        case ["truth", path, prompt, tokens]:
            print(json.dumps(truth(path, int(prompt), int(tokens))))
        case ["text", target]:
            text(target)
        case ["ids", path, source, target]:
            ids(path, source, target)
        case ["tokenizers", path, source, seconds]:
            print(json.dumps(tokenizers(path, source, float(seconds))))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
