"""BRMGR itself against golden means, pairs and totals, for both wordings of the prompt for generated passages."""

from __future__ import annotations

import math

import pytest

from drillrank import BRMGR, Passage
from drillrank.likelihood import LanguageModel, Likelihood
from drillrank.prompts import prompt_text
from drillrank.rerank.brmgr import GENERATED_PROMPT
from tests.drillrank.neural.golden import GPT2, T5, at_hand, golden, inputs, model

pytestmark = at_hand

TEMPLATE = "passage: {title} {text}. Please write a question based on this passage."
WORDINGS = {"question_only": "{question}", "instruction": GENERATED_PROMPT}


class Glued(LanguageModel):
    """GPT-2 as the golden numbers have it: the target follows its prompt without a blank.

    The model's own blank is avoided by a target that begins inside the prompt, of which only the end counts.
    """

    spec = "glued"

    def log_likelihood_batch(self, requests, temperature, include_eos):
        results = []
        for request in requests:
            prompt = prompt_text(request.prompt)
            cut = prompt.index(" ")
            [found] = model(GPT2).log_likelihood([(prompt[:cut], prompt[cut:] + request.target)])
            tokens = len(model(GPT2).engine.tokenizer(request.target).ids)
            log_probs = found.log_probs[-tokens:]
            results.append(Likelihood(found.tokens[-tokens:], log_probs, float(log_probs.sum())))
        return results


@pytest.mark.parametrize("wording", WORDINGS)
@pytest.mark.parametrize("name", [T5, GPT2])
def test_scores_pairs_and_totals(name, wording):
    lm = model(T5) if name == T5 else Glued()
    compared = 0
    for row in golden("brmgr_naive")[name]:
        case = inputs()["brmgr"][row["case"]]
        retrieved = [Passage(item["text"], id=item["id"], title=item["title"]) for item in case["retrieved"]]
        generated = [Passage(item["text"], id=item["id"]) for item in case["generated"]]
        brmgr = BRMGR(lm, settings={"template": TEMPLATE, "generated_template": WORDINGS[wording]})
        ranking = brmgr.rank(case["question"], retrieved, generated)
        means = {item["id"]: item["mean"] for item in row["retrieved"]}
        means |= {item["id"]: item["variants"][wording]["mean"] for item in row["generated"]}
        assert len(ranking) == len(means)
        pairs: dict[int, dict[str, str]] = {}
        for item in ranking:
            origin = item.details["origin"]
            assert item.details[f"{origin}_score"] == pytest.approx(means[item.passage.id], abs=1e-4)
            pairs.setdefault(item.details["pair"], {})[origin] = item.passage.id
            compared += 1
        whole = [[pair["retrieved"], pair["generated"]] for pair in pairs.values() if len(pair) == 2]
        assert whole == row["pairs_by_rank"][wording]
        scores = {item.details["pair"]: item.score for item in ranking}
        total = math.fsum(math.exp(score) for number, score in scores.items() if len(pairs[number]) == 2)
        assert total == pytest.approx(row["pairs_by_rank"][f"{wording}__hungarian_total"], rel=1e-4)
    assert compared == 18
