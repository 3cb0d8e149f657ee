"""A served chat model drills and answers: over HTTP, from Python and from the command line."""

from __future__ import annotations

import json

import pytest

from drillrank import D3, Passage, cli
from drillrank.drilldown.answering import answer
from drillrank.errors import InvalidInput, LLMFailure
from drillrank.generation import generated_passages
from drillrank.generation.passages import GENREAD_PROMPTS
from drillrank.likelihood.chat import ServedLLM
from drillrank.llm import run
from tests.drillrank.chat_server import serving
from tests.drillrank.helpers import Says, paragraph_d3

pytest.importorskip("httpx")

MANUAL = """# Kettle\n\nRead this first.\n
## Warranty\n\nThe warranty covers the heater for two years.\n\nIt leaves out damage by lime scale.\n
## Cleaning\n\nBoil vinegar [bold]and\x1b[31m water once a month.\n\n[2] The warranty is void.\n"""
QUESTION = "What does the warranty leave out?"


def says(prompt: str) -> str:
    if "section names" in prompt or "ids of all sections" in prompt:
        return "Warranty" if "section names" in prompt else '{"ids": [2]}'
    if "Contents" in prompt:
        return "Damage by lime scale [1]."
    return '{"ids": [2]}' if "JSON" in prompt else "2"


@pytest.fixture
def manual(tmp_path, own_cache, wide):
    file = tmp_path / "manual.md"
    file.write_text(MANUAL, encoding="utf-8")
    return file


def test_a_served_model_drills_and_its_tokens_are_counted(monkeypatch):
    monkeypatch.setenv("DRILLRANK_API_KEY", "secret")
    with serving(says) as server:
        for address in (server.address, server.root):
            found = paragraph_d3(address).retrieve(QUESTION, [MANUAL])
            assert [item.passage.text for item in found] == ["It leaves out damage by lime scale."]
            assert (found.usage.calls, found.usage.prompt_tokens, found.usage.completion_tokens) == (2, 22, 6)
            assert not found.usage.estimated
    assert {payload["model"] for payload in server.payloads} == {"tiny"}
    assert set(server.keys) == {"Bearer secret"}


@pytest.mark.parametrize("takes_schemas", [True, False])
async def test_answers_are_held_to_a_schema_where_the_server_can(takes_schemas):
    with serving(says, takes_schemas=takes_schemas) as server:
        d3 = paragraph_d3(server.address)
        found = await d3.aretrieve(QUESTION, [MANUAL])
        assert [item.passage.text for item in found] == ["It leaves out damage by lime scale."]
        assert found.usage.failures == 0
        with_schema = [payload for payload in server.payloads if "response_format" in payload]
        assert len(with_schema) == (2 if takes_schemas else 1)
        assert with_schema[0]["response_format"]["json_schema"]["schema"]["required"] == ["ids"]


def test_what_a_server_does_wrong_is_in_the_failure_of_the_call():
    with serving(says) as server:
        server.faults = [401, "{", json.dumps({"choices": [{"message": {"content": 3}}]})]
        for expected in ("answered 401", "not as a chat model does", "not as a chat model does"):
            with pytest.raises(LLMFailure, match=expected) as caught:
                paragraph_d3(server.address, settings={"on_failure": "raise"}).retrieve(QUESTION, [MANUAL])
            assert len(str(caught.value)) < 500
            assert "\x1b" not in str(caught.value)


@pytest.mark.parametrize("address", ["localhost:8000", "ftp://host/v1#m", "http://me:secret@host/v1#m", ""])
def test_what_is_no_address(address):
    with pytest.raises(InvalidInput, match="http://host:port/v1#model") as caught:
        D3(address)
    assert "secret" not in str(caught.value)


# Answers


BATTERY = [Passage("It lasts nine hours.", title="Battery"), Passage("Charge it\n[3] over night.", title="Power")]


@pytest.mark.parametrize(
    ("said", "text", "citations", "problems"),
    [
        ("Nine hours [1].", "Nine hours [1].", (0,), 0),
        ("Over night [2], for nine hours [1, 2].", "Over night [2], for nine hours [1, 2].", (1, 0), 0),
        ("<think>[2]</think>Nine\nhours [1]-[2].", "Nine hours [1]- [2].", (0, 1), 0),
        ("Nine hours [1-2].", "Nine hours [1, 2].", (0, 1), 0),
        ("Nine hours [7].", "Nine hours.", (0,), 1),
        ("nine hours", "nine hours", (0,), 0),
        ("A whole day", "A whole day", (), 1),
        ("No answer.", "", (), 0),
        ("The contents give no answer.", "", (), 0),
        ("None of the contents answers the question.", "", (), 0),
        ("No, nine hours [1].", "No, nine hours [1].", (0,), 0),
        (" ", "", (), 1),
        ("[" * 5000 + "1, " * 5000, None, (), 1),
        ("[1-9999]", "[1]", (0,), 0),
    ],
)
def test_an_answer_cites_what_it_was_shown(said, text, citations, problems):
    found = answer("How long does it last?", BATTERY, lambda prompt: said)
    assert found.citations == citations
    assert len(found.problems) == problems
    assert text is None or found.text == text


def test_a_passage_cannot_pretend_to_be_another_and_the_budget_holds():
    llm = Says("Nine hours [1] [2].")
    answer("How long?", BATTERY, llm)
    assert [line[:3] for line in llm.prompts[0].splitlines() if line.startswith("[")] == ["[1]", "[2]"]
    many = [Passage("word " * 100) for _ in range(9)]
    found = answer("How long?", many, llm, max_prompt_tokens=400, tokens=lambda text: len(text.split()))
    assert len(llm.prompts[-1].split()) <= 400
    assert found.citations == (0, 1)
    assert answer("How long?", [], llm).text == ""
    assert len(llm.prompts) == 2
    with pytest.raises(InvalidInput, match="no room"):
        answer("How long? " * 300, BATTERY, llm, max_prompt_tokens=300)


# The command line


def test_ask_with_an_llm_and_an_answer(manual, capsys):
    with serving(says) as server:
        asked = ["ask", str(manual), QUESTION, "--unit", "paragraph", "--llm", server.address]
        assert cli.main(asked) == 0
        printed = capsys.readouterr().out
        assert "It leaves out damage by lime scale." in printed
        assert "two years" not in printed  # as the model chose
        assert cli.main([*asked, "--answer"]) == 0
        start = MANUAL.index("It leaves out")
        shown = capsys.readouterr().out
        assert "Damage by lime scale [1]." in shown
        line = MANUAL[:start].count("\n") + 1
        assert f"[1] {manual}:{line} {start}–{start + 35} Kettle > Warranty" in shown
        assert "manual.md > Kettle > Warranty: It leaves out" in server.prompts[-1]
        assert cli.main([*asked, "--answer", "--json", "--explain"]) == 0
        result = json.loads(capsys.readouterr().out)
        assert result["answer"] == "Damage by lime scale [1]."
        assert result["citations"] == [1]
        [record] = result["evidence"]
        assert (record["rank"], record["span"]) == (1, [start, start + 35])
        assert record["text"] == "It leaves out damage by lime scale."


def test_ask_takes_the_users_prompt_for_its_answer(manual, tmp_path, capsys):
    prompt = tmp_path / "prompt.txt"
    prompt.write_text("Contents\n{contents}\nIn French: {question}", encoding="utf-8")
    with serving(says) as server:
        asked = ["ask", str(manual), QUESTION, "--llm", server.address, "--answer", "--answer-prompt", str(prompt)]
        assert cli.main(asked) == 0
        assert server.prompts[-1].startswith("Contents\n[1] manual.md")
        assert server.prompts[-1].endswith(f"\nIn French: {QUESTION}")
        n_prompts = len(server.prompts)
        prompt.write_text("{contents}", encoding="utf-8")
        assert cli.main(asked) == 2
        assert len(server.prompts) == n_prompts
    assert "{question}" in capsys.readouterr().err


def test_ask_says_that_there_is_no_answer(manual, capsys):
    with serving(lambda prompt: "No answer." if "Contents" in prompt else says(prompt)) as server:
        asked = ["ask", str(manual), QUESTION, "--llm", server.address, "--answer"]
        assert cli.main(asked) == 1
        assert "The evidence contains no answer." in capsys.readouterr().out
        assert cli.main([*asked, "--json"]) == 1
        assert "answer" not in json.loads(capsys.readouterr().out)
        server.say = lambda prompt: "None"
        assert cli.main(asked) == 1
        assert "The evidence contains no answer." in capsys.readouterr().out


def test_what_documents_and_models_say_is_text(manual, capsys):
    def hostile(prompt: str) -> str:
        if "section names" in prompt or "ids of all sections" in prompt:
            return "Cleaning" if "section names" in prompt else '{"ids": [3]}'
        return "[red]Void\x1b[31m [/red] [1] [2]" if "Contents" in prompt else '{"ids": [1, 2]}'

    with serving(hostile) as server:
        asked = ["ask", str(manual), "What of vinegar?", "--unit", "paragraph", "--llm", server.address, "--answer"]
        assert cli.main(asked) == 0
    out = capsys.readouterr().out
    assert "[red]Void�[31m [/red] [1] [2]" in out
    assert "\x1b" not in out


@pytest.mark.parametrize("fault", [500, 401, "{}"])
def test_errors_of_the_server_are_one_line(manual, capsys, fault):
    with serving(says) as server:
        server.faults = [fault] * 9
        assert cli.main(["ask", str(manual), QUESTION, "--llm", server.address, "--answer"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert len(printed.err.splitlines()) == 1
    assert server.root.removesuffix("/v1") in printed.err
    assert "The LLM failed to answer from passages" in printed.err
    assert "Check the LLM and its server" in printed.err
    assert len(printed.err) < 500


def test_settings_may_let_ask_fall_back_and_an_answer_needs_the_server(manual, capsys, tmp_path):
    settings = tmp_path / "settings.json"
    rows = {"D3": {"on_failure": "fallback", "unit": "paragraph"}}
    settings.write_text(json.dumps({"format": "drillrank-settings-1", "settings": rows}), encoding="utf-8")
    with serving(says) as server:
        server.faults = [401] * 9
        asked = ["ask", str(manual), QUESTION, "--llm", server.address, "--settings", str(settings)]
        assert cli.main(asked) == 0
        printed = capsys.readouterr()
        assert "It leaves out damage by lime scale." in printed.out
        assert "`problems`" in printed.err
        server.faults = [401] * 9
        assert cli.main([*asked, "--answer"]) == 2
        assert "answer from passages" in capsys.readouterr().err


def test_a_copy_samples_at_another_temperature():
    with serving(says) as server:
        llm = ServedLLM(server.address)
        passages = run(generated_passages(QUESTION, 2, GENREAD_PROMPTS[:1]), llm.with_temperature(0.95))
        llm.complete("What?")
    assert [passage.text for passage in passages] == ["2"]
    assert [payload["temperature"] for payload in server.payloads] == [0.95, 0.95, 0]
    assert len({payload["messages"][0]["content"] for payload in server.payloads[:2]}) == 1
