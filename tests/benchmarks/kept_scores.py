"""What a neural model says, kept in a file, so that it can be computed on another machine than the tables are made on.

A benchmark asks a `KeptModel` as it would ask the model. What the file does not hold yet goes into a list, which
`python -m tests.benchmarks.kept_scores LIST SCORES --model hf:DIRECTORY --device cuda` computes: it needs this package,
torch and transformers, goes on where it was stopped, and computes on as long as the list has new requests.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import math
import time
from collections.abc import Iterator, Sequence
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from drillrank.likelihood import LanguageModel, Likelihood, load_language_model
from drillrank.likelihood.base import Request
from drillrank.prompts import Evidence, Prompt, Wording

CHUNK = 4096  # requests after which a computation may be stopped


class KeptModel(LanguageModel):
    """A model of which a file knows the log-probabilities; where it does not, they are NaN and `missing` tells it.

    Args:
        name: What the file calls the model.
        scores: The file.
        tokens: Whether log-probabilities of the single tokens are wanted, or their sum alone.
        model: The model itself, which cuts texts at its tokens where the file does not tell the cut.
    """

    def __init__(self, name: str, scores: Path, *, tokens: bool, model: LanguageModel | None = None) -> None:
        self._name, self._scores, self._tokens, self._model = name, scores, tokens, model
        self._known = dict(read_scores(scores))
        self.missing: dict[str, dict[str, Any]] = {}
        self._cuts: dict[str, list[float]] = {}

    @property
    def spec(self) -> str:
        """A name that cannot be loaded."""
        return f"kept:{self._name}"

    def first_tokens(self, text: str, count: int) -> str:
        """As the model has it."""
        key = _key([self._name, count, text])
        if key not in self._known:
            if self._model is None:
                raise LookupError(f"{self._scores} does not tell where {count} tokens end: give the model.")
            self._known[key] = self._cuts[key] = [len(self._model.first_tokens(text, count))]
        return text[: int(self._known[key][0])]

    def write_missing(self, file: Path) -> int:
        """Write the list of what is missing, if anything is, and keep cuts; how many requests are missing."""
        _append(self._scores, list(self._cuts.items()))
        self._cuts = {}
        if self.missing:
            with gzip.open(file, "wt", encoding="utf-8") as lines:
                lines.writelines(json.dumps(one, ensure_ascii=False) + "\n" for one in self.missing.values())
        return len(self.missing)

    def _log_likelihood(self, requests: Sequence[Request], temperature: float, include_eos: bool) -> list[Likelihood]:
        return [self._one(request, temperature, include_eos) for request in requests]

    def _one(self, request: Request, temperature: float, include_eos: bool) -> Likelihood:
        asked = {
            "prompt": list(map(_part, request.prompt)),
            "target": request.target,
            "max_tokens": request.max_tokens,
            "temperature": temperature,
            "include_eos": include_eos,
            "tokens": self._tokens,
        }
        key = _key([self._name, asked])
        if (values := self._known.get(key)) is None:
            self.missing[key] = {"key": key, **asked}
            values = [math.nan] if self._tokens else [1, math.nan]
        log_probs = np.array(values) if self._tokens else np.full(int(values[0]), values[1] / values[0])
        return Likelihood([""] * len(log_probs), log_probs, float(log_probs.sum()))


def read_scores(file: Path) -> Iterator[tuple[str, list[float]]]:
    """Keys, and of each the log-probabilities of the tokens, or how many tokens there are and their sum."""
    if file.exists():
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            for line in lines:
                key, *values = json.loads(line)
                yield key, values


def compute(requests: Path, scores: Path, lm: LanguageModel) -> None:
    """Compute what the list asks for and the file lacks."""
    known = {key for key, _ in read_scores(scores)}
    with gzip.open(requests, "rt", encoding="utf-8") as lines:
        asked = [one for one in map(json.loads, lines) if one["key"] not in known]
    done, started, kind = 0, time.perf_counter(), itemgetter("temperature", "include_eos")
    for (temperature, include_eos), group in groupby(sorted(asked, key=kind), kind):
        while chunk := list(islice(group, CHUNK)):
            likelihoods = lm.log_likelihood(
                [Request(_prompt(one["prompt"]), one["target"], one["max_tokens"]) for one in chunk],
                temperature=temperature,
                include_eos=include_eos,
            )
            _append(
                scores,
                [
                    (
                        one["key"],
                        [round(value, 4) for value in found.log_probs.tolist()]
                        if one["tokens"]
                        else [len(found.tokens), round(found.total, 4)],
                    )
                    for one, found in zip(chunk, likelihoods, strict=True)
                ],
            )
            done += len(chunk)
            print(f"{done:,} of {len(asked):,} in {time.perf_counter() - started:.0f} s", flush=True)


def _append(file: Path, rows: Sequence[tuple[str, Sequence[float]]]) -> None:
    if not rows:
        return
    lines = (json.dumps([key, *values], separators=(",", ":")) + "\n" for key, values in rows)
    with file.open("ab") as members:  # at once, so that whoever stops it leaves whole ones
        members.write(gzip.compress("".join(lines).encode()))


def _key(asked: object) -> str:
    return hashlib.blake2b(json.dumps(asked, ensure_ascii=False).encode(), digest_size=8).hexdigest()


def _part(part: str | Evidence) -> Any:
    if isinstance(part, Evidence):
        return {"evidence": part.text, "max_tokens": part.max_tokens}
    return {"wording": str(part)} if isinstance(part, Wording) else part


def _prompt(parts: Sequence[Any]) -> Prompt:
    return tuple(
        part
        if isinstance(part, str)
        else Wording(part["wording"])
        if "wording" in part
        else Evidence(part["evidence"], part["max_tokens"])
        for part in parts
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.kept_scores", description=main.__doc__)
    parser.add_argument("requests", type=Path, metavar="LIST")
    parser.add_argument("scores", type=Path, metavar="SCORES")
    parser.add_argument("--model", required=True, help="such as hf:DIRECTORY")
    parser.add_argument("--device", help="such as cuda")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--batch-tokens", type=int)
    given = parser.parse_args()
    options = {"device": given.device, "dtype": given.dtype, "batch_tokens": given.batch_tokens}
    compute(given.requests, given.scores, load_language_model(given.model, **options))


if __name__ == "__main__":
    main()
