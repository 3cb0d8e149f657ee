"""The reranker kit: the core's rankers pass it, and each fault of a reranker fails the check for it."""

from __future__ import annotations

import asyncio
import time
from contextlib import contextmanager

import pytest

from drillrank import BRMGR, UPR, Passage, Path, PromptRank
from drillrank.likelihood import UnigramModel
from drillrank.testing import Event, RerankerTests, Result
from tests.drillrank.testing.checks import checks_of, expect_failure


class CoreRankerTests(RerankerTests):
    returns_given_records = True
    ranker = staticmethod(UPR)

    def make_reranker(self, top_n):
        return self.ranker(UnigramModel()), top_n

    def make_slow_reranker(self, wait):
        class SlowModel(UnigramModel):
            def log_likelihood_batch(self, *arguments):
                wait("model")
                return super().log_likelihood_batch(*arguments)

        return self.ranker(SlowModel()), None

    def make_record(self, id, text, metadata):
        return Passage(text, id=id, metadata=metadata)

    def rerank(self, reranker, question, records):
        ranker, top_n = reranker
        return self.results(ranker.rank(question, *self.candidates(records), top_n))

    async def arerank(self, reranker, question, records):
        ranker, top_n = reranker
        return self.results(await ranker.arank(question, *self.candidates(records), top_n))

    def candidates(self, records):
        return [records]

    def results(self, ranking):
        passages = [one.passage.passages[0] if isinstance(one.passage, Path) else one.passage for one in ranking]
        return [
            Result(passage.id, passage.text, one.score, passage.metadata)
            for one, passage in zip(ranking, passages, strict=True)
        ]


class TestUPR(CoreRankerTests):
    pass


class TestBRMGR(CoreRankerTests):
    ranker = staticmethod(BRMGR)

    def candidates(self, records):
        return [records, []]


class TestPromptRank(CoreRankerTests):
    ranker = staticmethod(PromptRank)

    def candidates(self, records):
        return [[Path((record,)) for record in records]]


# Faults


class Words:
    """Rank records, which are dictionaries, by the words that they share with the question."""

    def __init__(self, top_n):
        self.top_n = top_n

    def rank(self, question, records):
        if not question.strip():
            raise ValueError("The question is blank. Pass one.")
        words = set(question.lower().split())
        results = [
            Result(record["id"], record["text"], self.score(words, record), dict(record["metadata"]))
            for record in records
        ]
        return sorted(results, key=lambda result: -result.score)[: self.top_n]

    def score(self, words, record):
        return float(len(words & set(record["text"].lower().split())))

    async def arank(self, question, records):
        return await asyncio.to_thread(self.rank, question, records)


class WordsTests(RerankerTests):
    reranker_class = Words
    patience = 0.1

    def make_reranker(self, top_n):
        return self.reranker_class(top_n)

    def make_record(self, id, text, metadata):
        return {"id": id, "text": text, "metadata": dict(metadata)}

    def rerank(self, reranker, question, records):
        return reranker.rank(question, records)

    async def arerank(self, reranker, question, records):
        return await reranker.arank(question, records)

    def make_slow_reranker(self, wait):
        class SlowWords(self.reranker_class):
            def score(self, words, record):
                wait("model")
                return super().score(words, record)

        return SlowWords(None)

    @contextmanager
    def listen(self):
        yield self.reranker_class.sent


class SendsEvents(Words):
    sent: list[Event] = []  # noqa: RUF012

    def rank(self, question, records):
        self.sent.append(Event("start"))
        results = super().rank(question, records)
        self.sent.append(Event("end"))
        return results


class LosesTheLast(Words):
    def rank(self, question, records):
        return super().rank(question, records)[: max(1, len(records) - 1)] if records else []


class LosesMetadata(Words):
    def rank(self, question, records):
        return [result._replace(metadata={}) for result in super().rank(question, records)]


class LimitsBeforeItRanks(Words):
    def rank(self, question, records):
        return super().rank(question, records[: self.top_n])


class ScoresInWholeNumbers(Words):
    def score(self, words, record):
        return int(super().score(words, record))


class WorstFirst(Words):
    def rank(self, question, records):
        return super().rank(question, records)[::-1]


class NeedsRecords(Words):
    def rank(self, question, records):
        return super().rank(question, records) or [Result("none", "", 0.0, {})]


class RanksBlankQuestions(Words):
    def rank(self, question, records):
        return super().rank(question if question.strip() else "everything", records)


class FormatsTexts(Words):
    def score(self, words, record):
        return super().score(words, {**record, "text": record["text"].format(text="")})


class ReversesTies(Words):
    def rank(self, question, records):
        return super().rank(question, records[::-1])


class CountsTheFirstTwice(Words):
    def rank(self, question, records):
        first = records[0]["id"] if records else ""
        results = [one._replace(score=one.score + (one.id == first)) for one in super().rank(question, records)]
        return sorted(results, key=lambda result: -result.score)


class WritesIntoRecords(Words):
    def score(self, words, record):
        record["metadata"]["score"] = super().score(words, record)
        return record["metadata"]["score"]


class ScoresDriftAway(Words):
    calls = 0

    def score(self, words, record):
        self.calls += 1
        return super().score(words, record) + self.calls * 0.001


class ReturnsTheMetadataGiven(Words):
    def rank(self, question, records):
        metadata = {record["id"]: record["metadata"] for record in records}
        return [result._replace(metadata=metadata[result.id]) for result in super().rank(question, records)]


class RoundsInAsync(Words):
    async def arank(self, question, records):
        return [result._replace(score=result.score + 1) for result in await super().arank(question, records)]


class SharesTheQuestion(Words):
    def rank(self, question, records):
        self.question = question
        time.sleep(0.001)
        return super().rank(self.question, records)


class BlocksTheLoop(Words):
    async def arank(self, question, records):
        return self.rank(question, records)


FAULTS = {
    "comes_back_once_and_unchanged": [LosesTheLast, LosesMetadata],
    "at_most_top_n": [LimitsBeforeItRanks],
    "best_record_comes_first": [ScoresInWholeNumbers, WorstFirst],
    "no_records": [NeedsRecords],
    "blank_question": [RanksBlankQuestions],
    "are_data": [FormatsTexts],
    "equal_records": [ReversesTies],
    "order_of_records": [CountsTheFirstTwice],
    "changes_no_record": [WritesIntoRecords, ScoresDriftAway],
    "changed_results": [ReturnsTheMetadataGiven],
    "async_returns": [RoundsInAsync],
    "threads_get": [SharesTheQuestion],
    "block_the_event_loop": [BlocksTheLoop],
    "events": [SendsEvents],
}


@pytest.mark.parametrize(
    ("name", "fault"), [pytest.param(name, fault, id=fault.__name__) for name in FAULTS for fault in FAULTS[name]]
)
def test_a_fault_fails_the_check_for_it(name, fault):
    class FaultyTests(WordsTests):
        reranker_class = fault

    expect_failure(FaultyTests(), name)


def test_each_check_has_a_fault():
    assert {name for name in checks_of(RerankerTests) if not any(part in name for part in FAULTS)} == set()


class TestWords(WordsTests):
    """Without a fault, all checks pass; events are not sent."""

    listen = RerankerTests.listen
