"""UPR: unsupervised passage reranking by question likelihood.

score(p) = (1/|q|) Σ_t log p(q_t | q_<t, prompt(p))          Sachan et al. (2022); BRMGR, equations 3 and 4
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from drillrank.errors import InvalidInput, check_positive
from drillrank.likelihood import LanguageModel, Likelihood, Request, load_language_model
from drillrank.passages import Passage, Ranked, as_passages, check_query, check_top_n, ranked
from drillrank.prompts import UPR_PROMPT, PassageTemplate


class UPR:
    """Ranks passages by the mean log-likelihood of the question, given the passage.

    Args:
        lm: A language model, or its specification.
        template: Prompt with `{text}` and, if wanted, `{title}` before it.
        max_passage_tokens: Tokens that a passage may keep; None leaves it to the model's own limit.

    Scores are natural log-probabilities per question token: at most 0, higher is better, comparable within one
    question only. `details` holds `log_likelihood` (the sum), `tokens` (of the question), `cut_tokens` (of the
    passage) and `position` (in the input).

    Raises:
        InvalidInput: the template is malformed.

    >>> ranking = UPR().rank("Who wrote Emma?", ["Emma is a novel that Jane Austen wrote.", "Basel lies on the Rhine."])
    >>> ranking[0].passage.text
    'Emma is a novel that Jane Austen wrote.'
    """

    def __init__(
        self,
        lm: str | LanguageModel = "unigram",
        *,
        template: str = UPR_PROMPT,
        max_passage_tokens: int | None = None,
    ) -> None:
        if max_passage_tokens is not None:
            check_positive(max_passage_tokens=max_passage_tokens)
        self.lm = load_language_model(lm)
        self._template = PassageTemplate.parse(template)
        self._max_passage_tokens = max_passage_tokens

    def rank(self, query: str, passages: Iterable[Passage | str], top_n: int | None = None) -> list[Ranked[Passage]]:
        """Rank passages for one question; ties keep the input order.

        Args:
            query: The question.
            passages: Passages, or plain strings.
            top_n: How many to keep; None keeps all.

        Raises:
            InvalidInput: the query is blank, `top_n` is below 1, or an item is not a passage.
        """
        return self.rank_many([query], [passages], top_n)[0]

    def rank_many(
        self,
        queries: Sequence[str],
        passage_lists: Sequence[Iterable[Passage | str]],
        top_n: int | None = None,
    ) -> list[list[Ranked[Passage]]]:
        """Rank one list of passages for each question, all in one pass of the model; each as `rank` would.

        Raises:
            InvalidInput: as `rank`, or the two lists differ in length.
        """
        if isinstance(queries, str) or len(queries) != len(passage_lists):
            raise InvalidInput(f"{len(queries)} queries and {len(passage_lists)} lists of passages cannot be paired.")
        queries = [check_query(query) for query in queries]
        check_top_n(top_n)
        lists = [as_passages(passages) for passages in passage_lists]
        requests = [
            [Request(self._template.fill(passage, self._max_passage_tokens), query) for passage in passages]
            for query, passages in zip(queries, lists, strict=True)
        ]
        likelihoods = self.lm.log_likelihood_lists(requests)
        return [_by_mean(passages, scored, top_n) for passages, scored in zip(lists, likelihoods, strict=True)]


def _by_mean(passages: Sequence[Passage], scored: Sequence[Likelihood], top_n: int | None) -> list[Ranked[Passage]]:
    details = [
        {"log_likelihood": item.total, "tokens": len(item.tokens), "cut_tokens": item.cut_tokens} for item in scored
    ]
    return ranked(passages, [item.mean for item in scored], details, top_n)
