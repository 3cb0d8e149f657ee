"""The embedded language model by itself, and the text indexes."""

from __future__ import annotations

from typing import Any

from .building import build, imported
from .data import candidates, passages, pool, read
from .taking import Recorder


def unigram(recorder: Recorder) -> None:
    """Log-likelihoods per token, fitted and not, with budgets, several documents, temperatures."""
    load = imported("drillrank:load_language_model")
    request, evidence = imported("drillrank.likelihood:Request"), imported("drillrank.prompts:Evidence")
    texts = [passage.titled_text for passage in passages("nq").values()]
    fitted = {mu: build(load, "unigram", mu=mu).fit(texts) for mu in (300.0, 77.0)}
    for item in recorder.some(read("rerank/nq"), 120):
        question = item["question"]
        found = [passage.titled_text for passage in candidates("nq", item, 8)]
        pairs = [(text, question) for text in found]
        name = item["id"]
        recorder.take(f"unfitted/{name}", lambda: build(load, "unigram", mu=300.0).log_likelihood(pairs))
        for mu, model in fitted.items():
            recorder.take(f"fitted, mu {mu:g}/{name}", lambda: model.log_likelihood(pairs))
        model = fitted[300.0]
        for temperature in (0.7, 1.4):
            recorder.take(
                f"temperature {temperature}/{name}", lambda: model.log_likelihood(pairs[:4], temperature=temperature)
            )
        paths = [
            request(("Read ", evidence(found[0], max_tokens=limit), " and ", evidence(found[1]), " ."), question, room)
            for limit, room in ((None, None), (20, None), (None, 60), (5, 30))
        ]
        recorder.take(f"documents and budgets/{name}", lambda: model.log_likelihood(paths))
        recorder.take(f"unknown texts/{name}", lambda: model.log_likelihood([(f"{found[0]} quuxly", question)]))
        recorder.take(
            f"lists/{name}", lambda: build(load, "unigram", mu=300.0).log_likelihood_lists([pairs[:3], pairs[3:6]])
        )
        recorder.take(f"first tokens/{name}", lambda: [model.first_tokens(text, 9) for text in found])
    spec = fitted[77.0].save(recorder.folder / "saved")
    recorder.take("saved/model", lambda: _facts(load(spec)))
    item = read("rerank/nq")[0]
    recorder.take("saved/scores", lambda: load(spec).log_likelihood([(texts[0], item["question"])]))
    odd = [
        "東京は日本の首都です。",
        "Größe und Maß",
        "naïve café 1,234.5 FY22",
        "it's the U.S. e-mail",
        "\u200b a",
        "42",
    ]
    for number, text in enumerate(odd):
        recorder.take(f"odd texts/{number}", lambda: fitted[300.0].log_likelihood([(text, text), (odd[0], text)]))


def _facts(model: Any) -> dict[str, Any]:
    return {"spec": model.spec, "options": model.options, "reads instructions": model.reads_instructions}


def indexes(recorder: Recorder) -> None:
    """Scores of TF-IDF and BM25 over a pool, and the words that they see."""
    top, terms = imported("drillrank.retrieval:top"), imported("drillrank.terms:terms")
    for dataset in ("hotpotqa", "musique"):
        texts = [passage.titled_text for passage in pool(dataset)]
        for name in ("TfidfIndex", "BM25Index"):
            index = imported(f"drillrank.retrieval:{name}")(texts)
            for item in recorder.some(read(f"multihop/{dataset}"), 100):

                def best() -> list[dict[str, Any]]:
                    scores = index.scores(item["question"])
                    return [{"id": pool(dataset)[at].id, "score": float(scores[at])} for at in top(scores, 30)]

                recorder.take(f"{name}, {dataset}/{item['id']}", best)
    count = imported("drillrank.tokens:count_tokens")
    for number, text in enumerate(recorder.some([passage.text for passage in pool("hotpotqa")], 200)):
        recorder.take(f"tokens/{number}", lambda: count(text))
        recorder.take(f"terms/{number}", lambda: " ".join(terms(text)))
    recorder.take("terms/questions", lambda: [" ".join(terms(item["question"])) for item in read("multihop/2wiki")])
