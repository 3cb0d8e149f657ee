"""How the benchmark of an agent's tokens counts."""

from __future__ import annotations

from benchmarks.agent_tokens import Output, _grep, _read_files, count_until_answer


def words(text: str) -> int:
    return len(text.split())


def test_all_outputs_up_to_the_answer_count_as_a_whole():
    outputs = [Output("a.md: no", ["no"]), Output("b.md: the gold here", ["the gold here"]), Output("more", ["more"])]
    assert count_until_answer(outputs, {"gold": "gold"}, words) == (6, True)
    assert count_until_answer(outputs, {"gold": "silver"}, words) == (7, False)
    assert count_until_answer(outputs, {"gold": "gold", "gold2": "more"}, words) == (7, True)


def test_what_is_shown_around_texts_is_no_answer():
    assert count_until_answer([Output("gold.md: no", ["no"])], {"gold": "gold"}, words) == (2, False)


def test_grep_shows_the_lines_with_the_rarest_word_and_then_what_is_around_them():
    lines = {"a.md": ["The pot is wide.", *["filling"] * 30, "The lid is wide."], "b.md": ["wide"] * 3}
    outputs = list(_grep(lines)("Is the lid wide?"))
    assert outputs[0].shown == "a.md:32:The lid is wide."
    assert outputs[1].shown.splitlines() == [*["filling"] * 20, "The lid is wide."]
    assert outputs[2].shown.startswith("a.md:1:The pot is wide.\na.md:32:")


def test_files_are_read_after_their_list_with_most_words_of_the_question_first():
    files = {"a.md": "wide", "b.md": "wide lid", "c.md": "none"}
    assert [output.shown for output in _read_files(files)("Is the lid wide?")] == [
        "a.md\nb.md\nc.md",
        "wide lid",
        "wide",
        "none",
    ]
