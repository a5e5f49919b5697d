"""LoadGen's side of the suite mlperf: owns LoadGen and hands its queries to the engine.

Standard input is a socket to the engine. A message is its kind and the length of its body as two u32, then the body;
numbers are little-endian. The engine sends RUN with the settings of a test as JSON, and DONE and FIRST with answers.
This side sends QUERY with the time in nanoseconds, ids and samples of a query, LOAD and UNLOAD with samples, and END;
the engine sends these three back when it has done them.
"""

import array
import json
import os
import socket
import struct
import sys
import threading
import time
from collections.abc import Sequence

import mlperf_loadgen as loadgen

QUERY, LOAD, UNLOAD, END, RUN, DONE, FIRST = range(1, 8)

HEAD = struct.Struct("<II")
TIME = struct.Struct("<Q")
COUNT = struct.Struct("<Q")
# Id, tokens and bytes of an answer.
ANSWER = struct.Struct("<QII")
CHUNK = 1 << 16


class Engine:
    """The socket to the engine."""

    def __init__(self) -> None:
        self.socket = socket.socket(fileno=sys.stdin.fileno())
        self.buffer = bytearray()

    def send(self, kind: int, *parts: bytes) -> None:
        """Send a message; without an engine there is nothing left to do."""
        body = b"".join(parts)
        try:
            self.socket.sendall(HEAD.pack(kind, len(body)) + body)
        except OSError:
            os._exit(0)

    def receive(self) -> tuple[int, bytes]:
        """Wait for a message."""
        wanted = HEAD.size
        while True:
            if len(self.buffer) >= HEAD.size:
                kind, length = HEAD.unpack_from(self.buffer)
                wanted = HEAD.size + length
                if len(self.buffer) >= wanted:
                    body = bytes(self.buffer[HEAD.size : wanted])
                    del self.buffer[:wanted]
                    return kind, body
            try:
                part = self.socket.recv(max(CHUNK, wanted - len(self.buffer)))
            except OSError:
                part = b""
            if not part:
                # The engine is gone. LoadGen's threads cannot be told to stop.
                os._exit(0)
            self.buffer += part


def complete(kind: int, body: bytes) -> int:
    """Pass answers on to LoadGen, and say how many samples are answered."""
    (count,) = COUNT.unpack_from(body)
    start = COUNT.size + count * ANSWER.size
    data = array.array("B", body[start:])
    address, _ = data.buffer_info()
    responses = []
    for sample, tokens, length in ANSWER.iter_unpack(body[COUNT.size : start]):
        responses.append(
            loadgen.QuerySampleResponse(sample, address, length, tokens)
            if tokens
            else loadgen.QuerySampleResponse(sample, address, length)
        )
        address += length
    if kind == FIRST:
        loadgen.FirstTokenComplete(responses)
        return 0
    loadgen.QuerySamplesComplete(responses)
    return count


class Test:
    """One test as LoadGen runs it."""

    def __init__(self, engine: Engine, wanted: dict) -> None:
        self.engine = engine
        self.wanted = wanted
        # In the scenario Server queries are sent while others are under way; in others a query waits for its answers.
        self.reader = threading.Thread(target=self.read, daemon=True) if wanted["scenario"] == "Server" else None
        self.echoes = threading.Semaphore(0)

    def read(self) -> None:
        """Pass on what the engine sends, until the end of the test."""
        while True:
            kind, body = self.engine.receive()
            if kind in (DONE, FIRST):
                complete(kind, body)
                continue
            self.echoes.release()
            if kind == END:
                return

    def issue(self, ids: Sequence[int], samples: Sequence[int]) -> None:
        """Hand a query over."""
        now = TIME.pack(time.perf_counter_ns())
        self.engine.send(QUERY, now, array.array("Q", ids).tobytes(), array.array("Q", samples).tobytes())
        if self.reader is None:
            left = len(ids)
            while left > 0:
                left -= complete(*self.engine.receive())

    def ask(self, kind: int, samples: Sequence[int] = ()) -> None:
        """Have samples made ready or forgotten, or the test ended, and wait until the engine has done it."""
        self.engine.send(kind, array.array("Q", samples).tobytes())
        if self.reader is None:
            self.engine.receive()
        else:
            self.echoes.acquire()

    def run(self) -> None:
        """Run the test to its end."""
        wanted, settings = self.wanted, loadgen.TestSettings()
        refused = settings.FromConfig(wanted["user_conf"], wanted["model"], wanted["scenario"], 1)
        if refused:
            sys.exit(f"LoadGen refuses {wanted['user_conf']} (error {refused})")
        settings.scenario = getattr(loadgen.TestScenario, wanted["scenario"])
        settings.mode = getattr(loadgen.TestMode, wanted["mode"])
        logs = loadgen.LogSettings()
        logs.log_output.outdir = wanted["logs"]
        logs.log_output.copy_summary_to_stdout = False
        logs.enable_trace = False
        sut = loadgen.ConstructFastSUT(self.issue, lambda: None)
        count = wanted["samples"]
        library = loadgen.ConstructQSL(
            count, count, lambda samples: self.ask(LOAD, samples), lambda samples: self.ask(UNLOAD, samples)
        )
        if self.reader is not None:
            self.reader.start()
        loadgen.StartTestWithLogSettings(sut, library, settings, logs, "audit.config")
        loadgen.DestroyQSL(library)
        loadgen.DestroyFastSUT(sut)
        self.ask(END)


def main() -> None:
    """Run the test that the engine asks for."""
    engine = Engine()
    _, body = engine.receive()
    Test(engine, json.loads(body)).run()


if __name__ == "__main__":
    main()
