"""The prefix cache of Hugging Face models: scores as without it, bounds, files, and what is computed."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import pickle
import subprocess
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from hypothesis import given
from hypothesis import strategies as st

from drillrank import UPR, Passage
from drillrank.errors import DrillrankWarning, InvalidInput, LacksCapability
from drillrank.likelihood import HuggingFaceModel, Request, SumOfExperts, UnigramModel
from drillrank.likelihood.prefix_files import PrefixFiles, parse_bytes
from drillrank.likelihood.prefix_memory import PrefixMemory, StateLayout
from drillrank.prompts import TruncatableText
from tests.drillrank.limited_files import room_for
from tests.drillrank.neural.conftest import byte_level, wrapped
from tests.drillrank.neural.counting import counted
from tests.drillrank.neural.requests import phrases

SENTENCE = "The old town of Basel lies on the Rhine. "
DEMONSTRATION = "Document: Emma is a novel by Jane Austen. Question: who wrote it? " * 3
INSTRUCTIONS = (" Please write a question.", " Ask. Question:")
QUESTIONS = ("which river lies in the old town?", "who?")
TOKENS_BEFORE = "Passage: "


def make_request(text: str, question: str, instruction: str = INSTRUCTIONS[0], before: str = TOKENS_BEFORE) -> Request:
    return Request((before, TruncatableText(text), instruction), question)


def load(model: HuggingFaceModel, **options) -> HuggingFaceModel:
    """Return the same model with a prefix cache."""
    return HuggingFaceModel(model.spec.removeprefix("hf:"), **{"dtype": "float32", "prefix_cache": "4 MB"} | options)


def assert_same(likelihoods, expected):
    for one, other in zip(likelihoods, expected, strict=True):
        assert one.tokens == other.tokens
        np.testing.assert_allclose(one.log_probs, other.log_probs, atol=1e-4)


@pytest.fixture(scope="module")
def cached(model):
    return load(model)


@given(
    items=st.lists(
        st.tuples(phrases, st.integers(1, 9), st.sampled_from(INSTRUCTIONS), st.sampled_from(["", DEMONSTRATION])),
        min_size=1,
        max_size=6,
    ),
    question=phrases,
)
def test_scores_are_those_without_the_cache_whatever_was_asked_before(model, cached, items, question):
    requests = [make_request(text * n, question, instruction, before) for text, n, instruction, before in items]
    expected = model.log_likelihood(requests)
    assert_same(cached.log_likelihood(requests), expected)
    assert_same(cached.log_likelihood(requests), expected)


@pytest.mark.parametrize("prefix_cache", ["4 MB", "40 kB", "3 kB"])
def test_scores_are_the_same_with_prefixes_that_do_not_fit_together_or_at_all(model, prefix_cache):
    requests = [make_request(SENTENCE * n, question) for n in range(1, 9) for question in QUESTIONS]
    cached = load(model, prefix_cache=prefix_cache)
    expected = model.log_likelihood(requests)
    for _ in range(2):
        assert_same(cached.log_likelihood(requests), expected)


@pytest.mark.parametrize("batch_tokens", [1, 200, 100_000])
def test_scores_of_paths_are_the_same_in_batches_of_any_size(model, batch_tokens):
    texts = [f"{number} {SENTENCE * 2}" for number in range(3)]
    requests = [
        Request((DEMONSTRATION, *(TruncatableText(text) for text in path), instruction), question)
        for path in [(one, other) for one in texts for other in texts if one != other] + [(one,) for one in texts]
        for instruction in INSTRUCTIONS
        for question in QUESTIONS
    ]
    cached = load(model, batch_tokens=batch_tokens)
    expected = model.log_likelihood(requests)
    for _ in range(2):
        assert_same(cached.log_likelihood(requests), expected)


PASSAGES = {
    "empty": "",
    "white space": " \n\t ",
    "within a token of several bytes": "The town \N{CJK UNIFIED IDEOGRAPH-6771}",
    "one combining accent": "\N{COMBINING ACUTE ACCENT}",
    "half a character": "Basel \ud83e",
    "names of special tokens": "</s><|im_end|><|endoftext|><s>",
    "longer than the window": SENTENCE * 40,
    "one word that is longer than the window": "Basel" * 400,
    "zero bytes": "Basel\0Rhine\0",
}


@pytest.mark.parametrize("text", PASSAGES.values(), ids=PASSAGES)
def test_scores_of_passages_of_all_kinds_are_those_without_the_cache(model, cached, text):
    requests = [
        make_request(text, question, instruction, before)
        for question in QUESTIONS
        for instruction in (*INSTRUCTIONS, "\N{COMBINING ACUTE ACCENT} Ask.", "")
        for before in (TOKENS_BEFORE, "")
    ]
    requests = [one for one in requests if any(map(str, (one.prompt[0], one.prompt[2], text)))]
    expected = model.log_likelihood(requests)
    for _ in range(2):
        likelihoods = cached.log_likelihood(requests)
        assert_same(likelihoods, expected)
        assert [one.cut_tokens for one in likelihoods] == [one.cut_tokens for one in expected]


def test_temperature_and_end_of_sequence_count_as_without_the_cache(model):
    requests = [make_request(SENTENCE, question) for question in QUESTIONS]
    cached = load(model)
    for options in ({"temperature": 1.7}, {"include_eos": True}, {"include_eos": False}):
        assert_same(cached.log_likelihood(requests, **options), model.log_likelihood(requests, **options))


@pytest.fixture
def decoder(model):
    if model.include_eos_by_default:
        pytest.skip("a decoder-only model is needed")
    return model


def count_tokens(passes) -> int:
    return sum(rows * width for rows, width, _ in passes)


def test_a_second_question_computes_its_own_tokens_only(decoder):
    cached = load(decoder)
    texts = [f"{number} {SENTENCE * 3}" for number in range(6)]
    cached.log_likelihood([make_request(text, "who?") for text in texts])
    with counted(cached) as passes:
        [likelihood, *_] = cached.log_likelihood([make_request(text, QUESTIONS[0]) for text in texts])
    assert count_tokens(passes) <= len(texts) * (len(likelihood.tokens) + 1)  # one for padding to even widths
    assert len(passes) == 1


def test_a_first_question_is_read_in_the_pass_that_computes_the_prefixes(decoder):
    requests = [make_request(f"{number} {SENTENCE * 3}", "who?") for number in range(6)]
    cached = load(decoder)
    with counted(cached) as passes:
        assert_same(cached.log_likelihood(requests), decoder.log_likelihood(requests))
    assert len(passes) == 1


def test_another_instruction_shares_the_document(decoder):
    cached = load(decoder)
    text, tokenizer = SENTENCE * 4, cached.tokenizer
    cached.log_likelihood([make_request(text, "who?", INSTRUCTIONS[0])])
    with counted(cached) as passes:
        cached.log_likelihood([make_request(text, "who?", INSTRUCTIONS[1])])
    assert count_tokens(passes) <= len(tokenizer(f"{INSTRUCTIONS[1]} who?").ids) + 4


def test_paths_share_their_first_passage_and_keep_no_second_one(decoder):
    cached = load(decoder)
    one, other = (TruncatableText(f"{name} {SENTENCE * 4}") for name in ("One.", "Two."))
    whole = count_path_tokens(cached, one, other)
    assert count_path_tokens(cached, one, other) <= whole * 0.6
    assert count_path_tokens(cached, one, other) > whole * 0.4


def count_path_tokens(cached, *documents) -> int:
    with counted(cached) as passes:
        cached.log_likelihood([Request((*documents, " Question:"), "who?")])
    return count_tokens(passes)


def test_the_least_recently_used_prefix_gives_way(decoder):
    texts = [f"{name} {SENTENCE * 4}" for name in ("One.", "Two.", "Six.")]
    token_bytes = load(decoder).engine.prefixes.token_bytes
    n_tokens = len(decoder.tokenizer(f"{TOKENS_BEFORE}{texts[0]}{INSTRUCTIONS[0]}").ids)
    cached = load(decoder, prefix_cache=int(2.5 * n_tokens * (token_bytes + 24)))

    def is_kept(text: str) -> bool:
        with counted(cached) as passes:
            cached.log_likelihood([make_request(text, "who?")])
        return count_tokens(passes) < n_tokens / 2

    assert [is_kept(texts[i]) for i in (0, 1, 0, 2, 0, 1)] == [False, False, True, False, True, False]


def test_sixteen_threads_get_the_scores_without_the_cache(model):
    cached = load(model, prefix_cache="60 kB")
    requests = [[make_request(SENTENCE * (1 + i % 5), f"{i % 3} who?")] for i in range(48)]
    expected = [model.log_likelihood(one) for one in requests]
    with ThreadPoolExecutor(16) as pool:
        for likelihoods, one in zip(pool.map(cached.log_likelihood, requests), expected, strict=True):
            assert_same(likelihoods, one)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no forks")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning", "ignore:.*forked:drillrank.errors.DrillrankWarning")
def test_a_forked_process_has_a_cache_of_its_own(decoder):
    cached = load(decoder)
    requests = [make_request(SENTENCE * n, "who?") for n in (1, 2)]
    expected = decoder.log_likelihood(requests)
    cached.log_likelihood(requests[:1])
    child = os.fork()
    if not child:
        try:
            assert_same(cached.log_likelihood(requests), expected)
        except BaseException:
            os._exit(1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert_same(cached.log_likelihood(requests), expected)


def test_tasks_that_are_cancelled_leave_the_others_their_scores(decoder):
    passages = [f"{number} {SENTENCE * 2}" for number in range(8)]
    questions = [f"{number} {QUESTIONS[0]}" for number in range(12)]
    ranker = UPR(load(decoder, prefix_cache="60 kB"))

    async def ask() -> list:
        tasks = [asyncio.ensure_future(ranker.arank(question, passages)) for question in questions]
        await asyncio.sleep(0)
        for task in tasks[::3]:
            task.cancel()
        return await asyncio.gather(*tasks, return_exceptions=True)

    for index, (question, ranking) in enumerate(zip(questions, asyncio.run(ask()), strict=True)):
        if index % 3 == 0:
            assert isinstance(ranking, asyncio.CancelledError)
            continue
        expected = UPR(decoder).rank(question, passages)
        assert [item.score for item in ranking] == pytest.approx([item.score for item in expected], abs=1e-4)


def list_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_prefixes_on_disk_outlive_the_model_and_belong_to_their_owner(model, tmp_path):
    requests = [make_request(SENTENCE * n, "who?") for n in (1, 2, 3)]
    expected = model.log_likelihood(requests)
    load(model, prefix_cache_dir=str(tmp_path)).log_likelihood(requests)
    [folder] = tmp_path.iterdir()
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in list_files(tmp_path)} == {0o600}
    again = load(model, prefix_cache_dir=str(tmp_path))
    with counted_states(again) as n_states:
        assert_same(again.log_likelihood(requests), expected)
    assert not n_states


def counted_states(cached):
    """Return a context in which each computation of prefixes adds to a list."""

    class Counter:
        def __enter__(self):
            self.calls, self.compute = [], cached.engine.prefixes._compute
            cached.engine.prefixes._compute = lambda *arguments: (self.calls.append(1), self.compute(*arguments))
            return self.calls

        def __exit__(self, *_):
            cached.engine.prefixes._compute = self.compute

    return Counter()


DAMAGES = {
    "truncated": lambda content: content[: len(content) // 2],
    "empty": lambda content: b"",
    "one bit": lambda content: content[:-9] + bytes([content[-9] ^ 1]) + content[-8:],
    "zeros": lambda content: content[:48] + bytes(len(content) - 48),
    "another format": lambda content: b"x" * len(content),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_damaged_files_are_computed_again_with_one_warning(model, tmp_path, damage):
    requests = [make_request(SENTENCE * n, "who?") for n in (2, 3)]
    expected = model.log_likelihood(requests)
    load(model, prefix_cache_dir=str(tmp_path)).log_likelihood(requests)
    for path in list_files(tmp_path):
        path.write_bytes(damage(path.read_bytes()))
    with pytest.warns(DrillrankWarning, match="had a damaged file") as warned:
        assert_same(load(model, prefix_cache_dir=str(tmp_path)).log_likelihood(requests), expected)
    assert len(warned) == 1
    again = load(model, prefix_cache_dir=str(tmp_path))
    with counted_states(again) as n_states:
        assert_same(again.log_likelihood(requests), expected)
    assert not n_states


def test_other_weights_have_files_of_their_own(model, tmp_path):
    folder, cache = tmp_path / "model", tmp_path / "cache"
    requests = [make_request(SENTENCE, "who?")]
    network, tokenizer = model.engine.model, model.tokenizer._host
    cache_options = {"dtype": "float32", "prefix_cache": "4 MB", "prefix_cache_dir": str(cache)}
    load(model, prefix_cache_dir=str(cache)).log_likelihood(requests)
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    same = HuggingFaceModel(str(folder), **cache_options)
    same.log_likelihood(requests)
    assert len(list(cache.iterdir())) == 1
    weight = max(same.engine.model.parameters(), key=torch.numel)
    weight.data[0, 0] += 1e-3
    same.engine.model.save_pretrained(folder)
    other = HuggingFaceModel(str(folder), **cache_options)
    expected = HuggingFaceModel(str(folder), dtype="float32").log_likelihood(requests)
    assert_same(other.log_likelihood(requests), expected)
    assert len(list(cache.iterdir())) == 2


def test_another_chat_template_has_prefixes_of_its_own(decoder, tmp_path):
    folder, cache = tmp_path / "model", str(tmp_path / "cache")
    decoder.engine.model.save_pretrained(folder)
    requests = [make_request(SENTENCE * n, question) for n in (1, 3) for question in QUESTIONS]
    means = []
    for turn in ("[user] {} [assistant]", "Q: {} A:"):
        tokenizer = decoder.tokenizer._host
        before, after = turn.split("{}")
        tokenizer.chat_template = "{% for m in messages %}" + before + "{{ m['content'] }}" + after + "{% endfor %}"
        try:
            tokenizer.save_pretrained(folder)
        finally:
            tokenizer.chat_template = None
        model, plain = (
            HuggingFaceModel(str(folder), dtype="float32", chat=True, **options)
            for options in ({"prefix_cache": "4 MB", "prefix_cache_dir": cache}, {})
        )
        expected = plain.log_likelihood(requests)
        for _ in range(2):
            assert_same(model.log_likelihood(requests), expected)
        means.append([one.mean for one in expected])
    assert means[0] != pytest.approx(means[1], abs=1e-3)


def test_a_pickled_model_reads_the_files_of_the_first_one(model, tmp_path):
    requests = [make_request(SENTENCE * n, "who?") for n in (1, 2)]
    cached = load(model, prefix_cache_dir=str(tmp_path))
    expected = cached.log_likelihood(requests)
    again = pickle.loads(pickle.dumps(cached))
    with counted_states(again) as n_states:
        assert_same(again.log_likelihood(requests), expected)
    assert not n_states


@pytest.mark.skipif(os.name == "nt", reason="this system has no links to folders for everyone")
def test_a_file_that_cannot_be_read_is_not_called_damaged(model, tmp_path):
    requests = [make_request(SENTENCE * n, "who?") for n in (2, 3)]
    expected = model.log_likelihood(requests)
    load(model, prefix_cache_dir=str(tmp_path)).log_likelihood(requests)
    for path in list_files(tmp_path):
        path.unlink()
        path.symlink_to(path.name)  # a loop, which root cannot read either
    with pytest.warns(DrillrankWarning, match="cannot be read") as warned:
        assert_same(load(model, prefix_cache_dir=str(tmp_path)).log_likelihood(requests), expected)
    assert len(warned) == 1


def test_a_full_disk_is_a_warning(model, tmp_path):
    requests = [make_request(SENTENCE * n, "who?") for n in (1, 2)]
    expected = model.log_likelihood(requests)
    cached = load(model, prefix_cache_dir=str(tmp_path))
    cached.engine  # noqa: B018  # loads it
    with room_for(100), pytest.warns(DrillrankWarning, match="cannot be written") as warned:
        assert_same(cached.log_likelihood(requests), expected)
    assert len(warned) == 1
    assert not list_files(tmp_path)
    assert_same(cached.log_likelihood(requests), expected)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EDQUOT])
@pytest.mark.parametrize("is_there", [True, False])
def test_a_disk_that_is_full_or_read_only_from_the_start_is_a_warning(model, tmp_path, monkeypatch, code, is_there):
    requests = [make_request(SENTENCE * n, "who?") for n in (1, 2)]
    expected = model.log_likelihood(requests)
    if is_there:
        load(model, prefix_cache_dir=str(tmp_path)).log_likelihood(requests[:1])

    def refuse(*_: object, **__: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(Path, "mkdir", refuse)
    cached = load(model, prefix_cache_dir=str(tmp_path))
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always", DrillrankWarning)
        cached.engine  # noqa: B018  # loads it
        with counted_states(cached) as n_states:
            assert_same(cached.log_likelihood(requests[:1]), expected[:1])
        with room_for(10):
            assert_same(cached.log_likelihood(requests), expected)
    assert bool(n_states) != is_there
    assert ["cannot be written" in str(one.message) for one in warned] == [True]


def test_other_files_in_the_folder_are_neither_counted_nor_deleted(tmp_path):
    folder = tmp_path / "prefixes-of-words"
    folder.mkdir()
    names = ["un", "re.part", "a" * 39, "0" * 16, "A" * 40]
    for name in names:
        (folder / name).write_bytes(bytes(1000))
        os.utime(folder / name, (0, 0))
    states = np.zeros((2, 8), dtype=np.uint8)
    files = PrefixFiles(tmp_path, "x", 200)
    for number in range(9):
        files.save(number.to_bytes(20, "little"), states)
    assert sorted(path.name for path in folder.iterdir()) == sorted(names)
    assert len(list_files(tmp_path / "prefixes-x")) == 3


def test_a_folder_is_the_same_after_a_change_of_the_working_directory(tmp_path, monkeypatch):
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    states = np.zeros((2, 8), dtype=np.uint8)
    for name in ("cache", "~/cache"):
        files = PrefixFiles(name, "x", 10**6)
        files.save(name.encode().ljust(20), states)
        monkeypatch.chdir(tmp_path / "other")
        assert files.load(name.encode().ljust(20), *states.shape) is not None
        monkeypatch.chdir(tmp_path)
    assert len(list_files(tmp_path / "cache")) == 2


def test_files_stay_within_their_bound(model, tmp_path):
    token_bytes = load(model).engine.prefixes.token_bytes
    bound = 60 * token_bytes
    cached = load(model, prefix_cache_dir=str(tmp_path), prefix_cache_disk=bound)
    for number in range(12):
        cached.log_likelihood([make_request(f"{number} {SENTENCE}", "who?")])
        assert sum(path.stat().st_size for path in list_files(tmp_path)) <= bound
    assert list_files(tmp_path)


def test_temporary_files_of_a_dead_process_are_deleted(model, tmp_path):
    load(model, prefix_cache_dir=str(tmp_path)).log_likelihood([make_request(SENTENCE, "who?")])
    [folder] = tmp_path.iterdir()
    old, new = folder / f"{'0' * 16}.part", folder / f"{'1' * 16}.part"
    for path in (old, new):
        path.write_bytes(b"half of it")
    os.utime(old, (0, 0))
    load(model, prefix_cache_dir=str(tmp_path)).engine  # noqa: B018  # loads it
    assert (old.exists(), new.exists()) == (False, True)


WRITER = """
import sys
import numpy as np
from drillrank.likelihood.prefix_files import PrefixFiles, parse_bytes
files = PrefixFiles(sys.argv[1], "x", 10**9)
states = np.arange(2_000_000 // 8).view(np.uint8).reshape(100, -1)
for number in range(10**6):
    files.save(number.to_bytes(20, "little"), states)
    print(number, flush=True)
"""


def test_a_process_killed_while_it_writes_leaves_no_half_file(tmp_path):
    process = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE)
    for _ in range(3):
        process.stdout.readline()
    process.kill()
    n_written = 3 + len(process.communicate()[0].splitlines())
    files = PrefixFiles(tmp_path, "x", 10**9)
    states = np.arange(2_000_000 // 8).view(np.uint8).reshape(100, -1)
    for number in range(n_written + 2):
        loaded = files.load(number.to_bytes(20, "little"), *states.shape)
        assert number >= n_written if loaded is None else np.array_equal(loaded, states)


SHARER = """
import sys
import numpy as np
from drillrank.errors import DrillrankWarning
from drillrank.likelihood.prefix_files import PrefixFiles, parse_bytes
import warnings
warnings.simplefilter("error", DrillrankWarning)
folder, seed, bound = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
files, random = PrefixFiles(folder, "x", bound), np.random.default_rng(seed)
n_loaded = 0
for number in random.integers(0, 60, 1500).tolist():
    states = np.full((10, 400), number, dtype=np.uint8)
    loaded = files.load(number.to_bytes(20, "little"), *states.shape)
    if loaded is None:
        files.save(number.to_bytes(20, "little"), states)
    else:
        assert np.array_equal(loaded, states)
        n_loaded += 1
print(n_loaded)
"""


def test_processes_that_share_a_folder_read_whole_files_within_the_bound(tmp_path):
    bound = 100_000  # 24 of 60 files
    command = [sys.executable, "-c", SHARER, str(tmp_path)]
    processes = [
        subprocess.Popen([*command, str(seed), str(bound)], stdout=subprocess.PIPE, text=True) for seed in range(3)
    ]
    sizes = []
    while any(process.poll() is None for process in processes):
        sizes.append(sum(size_of(path) for path in list_files(tmp_path)))
    counts = [int(process.communicate()[0]) for process in processes]
    assert all(process.returncode == 0 for process in processes)
    assert min(counts) > 100
    n_file_bytes = 48 + 10 * 400
    # Each process writes a sixteenth before it counts again, and may have two files that no other one has counted.
    assert max(sizes) <= bound + len(processes) * (bound // 16 + 2 * n_file_bytes)


def size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:  # another process deleted it
        return 0


def test_threads_of_two_models_share_a_folder(model, tmp_path):
    requests = [make_request(f"{i} {SENTENCE}", "who?") for i in range(12)]
    expected = model.log_likelihood(requests)
    models = [load(model, prefix_cache_dir=str(tmp_path)) for _ in range(2)]
    results: list[list] = [[], []]

    def ask(index: int) -> None:
        for request in requests[:: 1 - 2 * index]:
            results[index] += models[index].log_likelihood([request])

    threads = [threading.Thread(target=ask, args=(index,)) for index in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert_same(results[0], expected)
    assert_same(results[1][::-1], expected)


def test_int8_takes_less_memory_and_changes_little(model):
    requests = [make_request(SENTENCE * n, question) for n in (1, 4) for question in QUESTIONS]
    cached = load(model, prefix_cache_dtype="int8")
    assert cached.engine.prefixes.token_bytes < load(model).engine.prefixes.token_bytes / 2
    expected = model.log_likelihood(requests)
    first, second = (cached.log_likelihood(requests) for _ in range(2))
    assert_same(second, first)
    for one, other in zip(first, expected, strict=True):
        np.testing.assert_allclose(one.log_probs, other.log_probs, atol=0.2)


def test_memory_reads_what_was_written():
    states = torch.randn(7, 3, 5)
    for is_int8, tolerance in ((False, 0), (True, 0.02)):
        memory = PrefixMemory(10_000, StateLayout([states, states], is_int8), torch.device("cpu"))
        rows = memory.reserve(7)
        for plane_index in range(2):
            memory.write(plane_index, torch.from_numpy(rows), states * (plane_index + 1))
        copied = PrefixMemory(10_000, memory.layout, torch.device("cpu"))
        other_rows = copied.reserve(9)[2:]
        copied.from_bytes(other_rows, memory.to_bytes(rows))
        for plane_index in range(2):
            read = copied.read(plane_index, torch.from_numpy(other_rows)[None])[0]
            torch.testing.assert_close(read, states * (plane_index + 1), atol=tolerance * 3, rtol=0)


def test_a_state_space_model_does_without_and_says_so(tmp_path):
    config = transformers.MambaConfig(vocab_size=400, hidden_size=16, state_size=4, num_hidden_layers=1)
    transformers.MambaForCausalLM(config).save_pretrained(tmp_path)
    wrapped(byte_level(["<|endoftext|>"]), eos_token="<|endoftext|>").save_pretrained(tmp_path)
    model = HuggingFaceModel(str(tmp_path), dtype="float32", prefix_cache="1 MB")
    requests = [make_request(SENTENCE, "who?")]
    with pytest.warns(DrillrankWarning, match="not used"):
        likelihoods = model.log_likelihood(requests)
    assert_same(likelihoods, HuggingFaceModel(str(tmp_path), dtype="float32").log_likelihood(requests))
    with pytest.raises(LacksCapability, match="no prefix cache"):
        model.keep_prefixes(requests)


def test_prefixes_are_computed_beforehand(decoder):
    cached = load(decoder)
    texts = [f"{number} {SENTENCE * 3}" for number in range(5)]
    prompts = [make_request(text, "") for text in texts]
    estimate = cached.estimate_prefixes(prompts)
    assert estimate.n_prompts == 5
    assert estimate.n_bytes == estimate.n_tokens * cached.engine.prefixes.token_bytes <= estimate.max_bytes
    progress = []
    kept = cached.keep_prefixes(prompts, lambda *counts: progress.append(counts))
    assert (kept.n_tokens, progress[-1]) == (estimate.n_tokens, (5, 5))
    with counted(cached) as passes:
        requests = [make_request(text, QUESTIONS[0]) for text in texts]
        [likelihood, *_] = likelihoods = cached.log_likelihood(requests)
    assert count_tokens(passes) <= len(texts) * (len(likelihood.tokens) + 1)
    assert_same(likelihoods, decoder.log_likelihood(requests))


def test_prefixes_beyond_the_bound_are_refused(model):
    cached = load(model, prefix_cache="20 kB")
    prompts = [make_request(f"{number} {SENTENCE * 3}", "") for number in range(20)]
    with pytest.raises(InvalidInput, match="Raise prefix_cache"):
        cached.keep_prefixes(prompts)
    assert not cached.estimate_prefixes(prompts).fits


SIZES = {
    "1 GB": 10**9, "1GB": 10**9, " 1.5 gb ": 1_500_000_000, "20 kB": 20_000, "0.5 MB": 500_000, "7 B": 7, "7": 7, 7: 7,
    "0": None, 0: None, "0 GB": None, "0.1 B": None, -1: None, "-1 GB": None, "1 GiB": None, "1,5 GB": None, "": None,
    "GB": None, "1e9": None, "1 GB 2": None, 1e9: None, True: None, "\N{ARABIC-INDIC DIGIT ONE} GB": None,
}  # fmt: skip


@pytest.mark.parametrize(("size", "n_bytes"), list(SIZES.items()))
def test_sizes_are_numbers_of_bytes_with_a_unit(size, n_bytes):
    if n_bytes is not None:
        assert parse_bytes("prefix_cache", size) == n_bytes
        return
    with pytest.raises(InvalidInput, match=r'prefix_cache must be a positive number of bytes, such as "1 GB", got'):
        parse_bytes("prefix_cache", size)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"prefix_cache": "much"}, "prefix_cache must be a positive number of bytes"),
        ({"prefix_cache": "9" * 400 + " GB"}, "prefix_cache must be a positive number of bytes"),
        ({"prefix_cache": "1 \N{KELVIN SIGN}B"}, "prefix_cache must be a positive number of bytes"),
        ({"prefix_cache": 0}, "prefix_cache must be"),
        ({"prefix_cache": None, "prefix_cache_dir": "cache"}, "needs a size in memory"),
        ({"prefix_cache_dtype": "int4"}, "prefix_cache_dtype must be"),
        ({"prefix_cache_disk": "-1 GB"}, "prefix_cache_disk must be"),
    ],
)
def test_options_that_cannot_be_used_are_refused(options, message):
    with pytest.raises(InvalidInput, match=message):
        HuggingFaceModel("model", **{"prefix_cache": "1 GB"} | options)


def test_sizes_that_cannot_be_used_are_refused_at_the_first_use(model, tmp_path):
    for size in ("999999999999999 TB", "9000000 TB", "999 TB"):
        with pytest.raises(InvalidInput, match="more memory than"):
            load(model, prefix_cache=size).log_likelihood([make_request("a", "b")])
    with pytest.raises(InvalidInput, match="less than"):
        load(model, prefix_cache=8).log_likelihood([make_request("a", "b")])
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidInput, match="prefix_cache_dir"):
        load(model, prefix_cache_dir=str(tmp_path / "file")).log_likelihood([make_request("a", "b")])


def test_other_models_have_no_prefix_cache(model):
    for other in (model, UnigramModel()):
        with pytest.raises(LacksCapability, match="no prefix cache"):
            other.keep_prefixes([make_request("a", "b")])


def test_upr_computes_passages_before_the_question(decoder):
    passages = [Passage(SENTENCE * n, title="Basel" if n == 2 else "") for n in (1, 2, 3)]
    for preset in (None, "rankify"):
        cached = UPR(load(decoder), preset=preset)
        assert cached.estimate_precompute(passages).fits
        estimate = cached.precompute(passages)
        assert (estimate.n_prompts, cached.estimate_precompute(passages).seconds) == (3, 0)
        with counted(cached.language_model) as passes:
            ranking = cached.rank(QUESTIONS[0], passages)
        assert len(passes) == 1
        expected = UPR(decoder, preset=preset).rank(QUESTIONS[0], passages)
        assert [item.score for item in ranking] == pytest.approx([item.score for item in expected], abs=1e-4)


def test_a_sum_keeps_prefixes_in_its_experts_that_have_a_cache(decoder):
    passages = [SENTENCE * n for n in (1, 2)]
    model = SumOfExperts([UnigramModel(), load(decoder)])
    assert UPR(model).precompute(passages).n_prompts == 2
    assert UPR(model).estimate_precompute(passages).seconds == 0
    with pytest.raises(LacksCapability, match="no prefix cache"):
        UPR(SumOfExperts([UnigramModel(), decoder])).precompute(passages)


MEMORY_BOUND, MEMORY_NOISE = 64_000_000, 10_000_000
READER = """
import json, sys
from concurrent.futures import ThreadPoolExecutor
from benchmarks.measure import resident
from drillrank.likelihood import HuggingFaceModel
pairs = [(f"{number} {'The old town of Basel lies on the Rhine. ' * 8}", "who?") for number in range(120)]
for options in ({}, {"prefix_cache": int(sys.argv[2])}):
    model = HuggingFaceModel(sys.argv[1], batch_tokens=128, dtype="float32", device="cpu", **options)
    model.engine
    before = resident()
    with ThreadPoolExecutor(16) as pool:
        likelihoods = [*pool.map(model.log_likelihood, [[pair] for pair in pairs])]
    print(json.dumps([before, resident("VmHWM"), [one[0].mean for one in likelihoods]]))
"""


@pytest.mark.timeout(300)
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says how much memory a process had")
def test_sixteen_threads_take_no_more_memory_than_the_bound(tmp_path):
    config = transformers.LlamaConfig(
        vocab_size=400, hidden_size=32, intermediate_size=48, num_hidden_layers=8, num_attention_heads=4, head_dim=32,
        max_position_embeddings=600, bos_token_id=0, eos_token_id=1,
    )  # fmt: skip
    transformers.LlamaForCausalLM(config).save_pretrained(tmp_path)
    wrapped(byte_level(["<s>", "</s>"]), eos_token="</s>").save_pretrained(tmp_path)
    command = [sys.executable, "-c", READER, str(tmp_path), str(MEMORY_BOUND)]
    lines = subprocess.run(command, capture_output=True, check=True).stdout.splitlines()
    (_, _, expected), (before, peak, means) = map(json.loads, lines)
    np.testing.assert_allclose(means, expected, atol=1e-4)
    # All prefixes together have 12,000 tokens of 8,192 bytes, so that some give way.
    assert MEMORY_BOUND * 0.9 < (peak - before) * 1024 < MEMORY_BOUND + MEMORY_NOISE
