"""A vLLM server on this machine."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import httpx

PYTHON = os.environ.get("DRILLRANK_VLLM_PYTHON")


class VLLM:
    """The server, started and ended as often as need be."""

    def __init__(self, folder: Path, *arguments: str, max_length: int = 1024) -> None:
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            self.port = unused.getsockname()[1]
        self.folder = folder
        self.arguments = [*arguments, "--max-model-len", str(max_length)]
        self.start()

    def start(self) -> None:
        settings = ["--model", str(self.folder), "--host", "127.0.0.1", "--port", str(self.port), "--dtype", "float32"]
        settings += ["--enforce-eager", "--served-model-name", "tiny", *self.arguments]
        self.process = subprocess.Popen(
            [str(PYTHON), "-m", "vllm.entrypoints.openai.api_server", *settings],
            env={**os.environ, "VLLM_CPU_KVCACHE_SPACE": "1", "PYTHONPATH": ""},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=self.folder,
            start_new_session=True,
        )

    def wait(self) -> None:
        for _ in range(300):
            assert self.process.poll() is None, "vLLM ended"
            with suppress(httpx.HTTPError):
                if httpx.get(f"http://127.0.0.1:{self.port}/health").is_success:
                    return
            time.sleep(3)
        raise AssertionError("vLLM did not start")

    def close(self) -> None:
        os.killpg(self.process.pid, 9)
        self.process.wait()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1#tiny"
