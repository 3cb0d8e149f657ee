"""Instructions from a tiny T5 that has learnt to fill the paper's templates, and from one that has learnt nothing."""

from __future__ import annotations

import json
import warnings

import pytest
import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors

from drillrank import load_language_model
from drillrank.__main__ import main
from drillrank.errors import DrillrankWarning, InvalidInput
from drillrank.evaluation import tune
from drillrank.rerank.promptrank import check_instructions
from drillrank.rerank.tuning import INSTRUCTION_SEARCH_TEMPLATES, generate_instructions
from tests.drillrank.helpers import write_rows

X, Y = ["Read the", "Search", "Review all of the"], ["and ask some", "to answer a"]
SPECIAL = ["<pad>", "</s>", "<unk>", "<extra_id_0>", "<extra_id_1>", "<extra_id_2>"]


def tokenizer(special: list[str] = SPECIAL) -> transformers.PreTrainedTokenizerFast:
    words = sorted(set(" ".join([*INSTRUCTION_SEARCH_TEMPLATES, *X, *Y]).replace("<X>", "").replace("<Y>", "").split()))
    pieces = [*special, *(f"▁{word}" for word in words), "▁"]
    backend = Tokenizer(models.WordLevel({piece: i for i, piece in enumerate(pieces)}, unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    backend.decoder = decoders.Metaspace()
    backend.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=backend,
        pad_token="<pad>",
        eos_token="</s>",
        unk_token="<unk>",
        additional_special_tokens=special[3:],
    )


def saved(place, train_steps: int) -> str:
    torch.manual_seed(3)
    tok = tokenizer()
    config = transformers.T5Config(
        vocab_size=len(tok), d_model=32, d_kv=8, d_ff=64, num_layers=1, num_heads=4, decoder_start_token_id=0,
        dropout_rate=0.0,
    )  # fmt: skip
    model = transformers.T5ForConditionalGeneration(config)
    prompts = [t.replace("<X>", "<extra_id_0>").replace("<Y>", "<extra_id_1>") for t in INSTRUCTION_SEARCH_TEMPLATES]
    pairs = [(p, f"<extra_id_0> {x} <extra_id_1> {y} <extra_id_2>") for p in prompts for x in X for y in Y]
    given, wanted = (tok([pair[side] for pair in pairs], return_tensors="pt", padding=True) for side in (0, 1))
    labels = wanted["input_ids"].masked_fill(wanted["attention_mask"] == 0, -100)
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(train_steps):
        optimiser.zero_grad()
        model(input_ids=given["input_ids"], attention_mask=given["attention_mask"], labels=labels).loss.backward()
        optimiser.step()
    model.save_pretrained(place)
    tok.save_pretrained(place)
    return f"hf:{place}"


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> str:
    return saved(tmp_path_factory.mktemp("trained"), 60)


def possible() -> set[str]:
    return {f"{{path}} {x} previous documents and {y} question. Question:" for x in X for y in Y} | {
        f"{x} documents {y} question. {{path}} Question:" for x in X for y in Y
    }


def test_templates_are_filled_and_the_steering_words_dropped(trained):
    written = generate_instructions(trained, 8, top_k=5, seed=1)
    assert len(set(written)) == len(written) == 8
    assert len(set(written) & possible()) >= 6  # it has learnt them by heart, nearly
    assert check_instructions(written) == tuple(written)
    assert not any("<" in text or "Task:" in text or "based on them" in text for text in written)
    assert {text.startswith("{path}") for text in written} == {True, False}


def test_what_it_writes_can_be_tuned_over(trained):
    lm = load_language_model(trained, dtype="float32")
    written = generate_instructions(lm, 4, top_k=5)
    texts = ("Read the documents", "Search", "answer a question")
    candidates = [{"id": str(number), "text": text} for number, text in enumerate(texts)]
    asked = [{"id": id_, "question": "Search documents", "gold": ["1"], "candidates": candidates} for id_ in "ab"]
    grid = {"instructions": [[wording] for wording in written], "temperature": [1.0, 1.4]}
    grid |= {name: [] for name in ("ensemble", "prior", "prior_weight")}
    tuned = tune(asked, {"component": "PromptRank", "model": lm}, grid=grid, measure="RR")
    assert len(tuned.trials) >= len(written) + 1
    assert set(tuned.settings.get("instructions", written)) <= set(written)


def test_the_command_lets_a_t5_write_them(trained, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    texts = ("Read the documents", "Search", "answer a question")
    candidates = [{"id": str(number), "text": text} for number, text in enumerate(texts)]
    write_rows("asked.jsonl", [{"id": i, "question": "Search", "gold": ["1"], "candidates": candidates} for i in "ab"])
    component = json.dumps({"component": "PromptRank", "model": trained})
    fixed = [word for name in ("ensemble", "temperature", "prior", "prior_weight") for word in ("--try", f"{name}=[]")]
    words = ["tune", "asked.jsonl", "--component", component, *fixed, "--folds", "2", "--measure", "RR", "--json"]
    assert main([*words, "--write-instructions", trained, "--n-instructions", "3"]) == 0
    trials = json.loads(capsys.readouterr().out)["trials"]
    assert len(trials) == 4  # the defaults, and three that it wrote
    assert all(line == "the defaults" or ("question. " in line and "{path}" in line) for line in trials)
    assert main([*words, "--write-instructions", "unigram"]) == 2
    assert "encoder-decoder" in capsys.readouterr().err


def test_other_models_are_refused(trained, folder):
    for wrong in ("unigram", f"hf:{folder}"):
        with pytest.raises(InvalidInput, match=r"encoder-decoder"):
            generate_instructions(wrong)
    for numbers in ({"count": 0}, {"top_k": 0}):
        with pytest.raises(InvalidInput, match="at least 1"):
            generate_instructions(trained, **numbers)


def test_a_model_that_fills_no_spans(tmp_path):
    untrained = saved(tmp_path, 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DrillrankWarning)
        try:
            written = generate_instructions(untrained, 20, top_k=2)
        except InvalidInput as error:
            assert "fills no spans" in str(error)  # noqa: PT017
        else:
            assert check_instructions(written)
