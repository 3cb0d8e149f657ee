"""What is written where there is no room for it: whole or not at all, told, and taken up again."""

from __future__ import annotations

import os

import pytest

from drillrank.__main__ import main
from drillrank.errors import DrillrankWarning, InvalidInput
from drillrank.evaluation.results_file import QuestionResult, ResultsFile
from drillrank.files import check_target, replace_file
from drillrank.likelihood.encoder import SentenceVectors
from drillrank.likelihood.unigram import UnigramModel
from tests.drillrank.limited_files import room_for


def test_no_file_takes_the_place_of_a_pipe_or_device(tmp_path):
    place = tmp_path / "pipe"
    os.mkfifo(place)
    with pytest.raises(InvalidInput, match="a pipe or device has this name"):
        check_target(place)
    with pytest.raises(OSError, match="a pipe or device has this name"), replace_file(place) as file:
        file.write(b"new")
    assert place.is_fifo()


def words(count: int) -> list[str]:
    return [f"word{number}" for number in range(count)]


@pytest.mark.parametrize("there", [True, False])
def test_a_place_keeps_its_content_until_the_new_one_is_whole(tmp_path, there):
    place = tmp_path / "notes"
    if there:
        place.write_bytes(b"old")

    def content() -> list[tuple[str, bytes]]:
        return [(file.name, file.read_bytes()) for file in tmp_path.iterdir()]

    def write(size: int, error: type[BaseException] | None = None) -> None:
        with replace_file(place) as file:
            file.write(bytes(size))
            if error:
                raise error

    before = content()
    with pytest.raises(KeyboardInterrupt):
        write(1, KeyboardInterrupt)
    with room_for(100), pytest.raises(OSError, match="File too large"):
        write(100_000)
    assert content() == before
    write(1)
    assert content() == [("notes", b"\0")]


def test_a_fit_that_cannot_be_saved_leaves_the_one_before(tmp_path):
    small, large = UnigramModel().fit(["old words"]), UnigramModel().fit(words(2_000))
    spec = small.save(tmp_path)
    before = [one.read_bytes() for one in tmp_path.iterdir()]
    with room_for(4_000), pytest.raises(InvalidInput, match=r"cannot be saved .* File too large"):
        large.save(tmp_path)
    assert [one.read_bytes() for one in tmp_path.iterdir()] == before
    assert large.save(tmp_path) == spec


def test_vectors_that_cannot_be_kept_serve_the_process_that_made_them(tmp_path):
    asked: list[str] = []

    def encode(texts):
        asked.extend(texts)
        return [[len(text), 1.0] for text in texts]

    vectors = SentenceVectors(encode, tmp_path)
    with room_for(1_000), pytest.warns(DrillrankWarning, match=r"500 vectors cannot be kept .* File too large"):
        vectors.index(words(500))
    assert len(vectors.of(words(500))) == len(asked) == 500
    assert not [*tmp_path.iterdir()]
    SentenceVectors(encode, tmp_path).index(words(500))
    assert len(SentenceVectors(encode, tmp_path).of(words(500))) == 500
    assert len(asked) == 1_000


def test_results_that_were_written_are_not_lost(tmp_path):
    file, known = tmp_path / "results.jsonl", [QuestionResult("UPR", "", name, ["p"], [1.0]) for name in words(50)]
    records = ResultsFile(file, "these questions")
    with room_for(2_000), pytest.raises(InvalidInput, match=r"cannot be written: .* Make room and run again"):
        [*map(records.add, known)]
    kept = file.read_bytes().count(b"\n") - 1
    assert 0 < kept < 50
    assert not file.read_bytes().endswith(b"\n")
    again = ResultsFile(file, "these questions")
    assert [again.get("UPR", "", name) for name in words(50)] == known[:kept] + [None] * (50 - kept)
    for record in known[kept:]:
        again.add(record)
    assert [ResultsFile(file, "these questions").get("UPR", "", name) for name in words(50)] == known


def test_a_cache_that_cannot_grow_costs_no_answer(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    text = "\n\n".join(f"# Part {number}\n\nOwls of kind {number} hunt at night." for number in range(300))
    (tmp_path / "owls.md").write_text(text)
    ask = ["ask", str(tmp_path / "owls.md"), "What hunts at night?", "--json"]
    with room_for(40_000):
        assert main(ask) == 0
    first, told = capsys.readouterr()
    assert "cache cannot be used, so all files are read again" in told
    assert main(ask) == 0
    assert capsys.readouterr().out == first != ""
