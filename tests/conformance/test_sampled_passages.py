"""BRMGRRetriever samples passages with one prompt if its LLM has a temperature, and asks several prompts otherwise."""

from __future__ import annotations

import asyncio
import warnings
from typing import Any

import pytest
import torch
import transformers
from langchain_core.documents import Document
from langchain_core.language_models import llms
from langchain_core.runnables import RunnableLambda
from llama_index.core import Settings
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

import langchain_ext
import llama_index_ext
from drillrank.errors import DrillrankWarning
from drillrank.generation.passages import GENREAD_PROMPTS, SAMPLING_TEMPERATURE
from tests.drillrank.neural.conftest import saved

QUESTION = "Who wrote Emma?"
TEXT = "Emma is a novel that Jane Austen wrote."
ASKED = [prompt.replace("{question}", QUESTION) for prompt in GENREAD_PROMPTS]


class Writer:
    """A tiny network that writes, and remembers prompts and temperatures. At temperature 0 it does not sample."""

    def __init__(self, folder: str) -> None:
        self.network = transformers.AutoModelForCausalLM.from_pretrained(folder).eval()
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        self.calls: list[tuple[str, float]] = []

    def write(self, prompt: str, temperature: float) -> str:
        self.calls.append((prompt, temperature))
        inputs = self.tokenizer(prompt[-40:], return_tensors="pt")
        options = {"do_sample": True, "temperature": temperature} if temperature else {"do_sample": False}
        with torch.inference_mode():
            ids = self.network.generate(**inputs, max_new_tokens=12, pad_token_id=0, **options)[0]
        return "word " + self.tokenizer.decode(ids[inputs["input_ids"].shape[1] :])

    @property
    def prompts(self) -> list[str]:
        return sorted(prompt for prompt, _ in self.calls)

    @property
    def temperatures(self) -> set[float]:
        return {temperature for _, temperature in self.calls}


class LlamaIndexLLM(CustomLLM):
    writer: Any

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name="tiny")

    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        return CompletionResponse(text=self.writer.write(prompt, getattr(self, "temperature", 0.0)))

    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
        raise NotImplementedError


class SamplingLlamaIndexLLM(LlamaIndexLLM):
    temperature: float = 0.0


class LangChainText(llms.LLM):
    writer: Any

    @property
    def _llm_type(self) -> str:
        return "tiny"

    def _call(self, prompt: str, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> str:
        return self.writer.write(prompt, getattr(self, "temperature", 0.0))


class SamplingLangChainText(LangChainText):
    temperature: float = 0.0


class OneNode(BaseRetriever):
    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [NodeWithScore(node=TextNode(text=TEXT, id_="emma"), score=0.9)]


@pytest.fixture
def writer(tmp_path_factory):
    torch.manual_seed(0)
    return Writer(str(saved("gpt2", tmp_path_factory)))


class LlamaIndex:
    plain, sampling = LlamaIndexLLM, SamplingLlamaIndexLLM

    @staticmethod
    def retrieve(llm: Any, **fields: Any) -> list[str]:
        found = llama_index_ext.BRMGRRetriever(OneNode(), llm, **fields).retrieve(QUESTION)
        return [hit.node.text for hit in found if hit.node.metadata.get("drillrank_origin") == "generated"]


class LangChain:
    plain, sampling = LangChainText, SamplingLangChainText

    @staticmethod
    def retrieve(llm: Any, **fields: Any) -> list[str]:
        source = RunnableLambda(lambda _: [Document(page_content=TEXT, id="emma")])
        found = langchain_ext.BRMGRRetriever(source, llm, **fields).invoke(QUESTION)
        return [one.page_content for one in found if one.metadata.get("drillrank_origin") == "generated"]


@pytest.fixture(params=[LlamaIndex, LangChain])
def host(request):
    return request.param


def test_the_preset_samples_ten_passages_with_one_prompt(host, writer):
    llm = host.sampling(writer=writer)
    texts = host.retrieve(llm, preset="paper")
    assert writer.prompts == ASKED[:1] * 10
    assert writer.temperatures == {SAMPLING_TEMPERATURE}
    assert len(set(texts)) == len(texts) > 5  # random weights hardly write a text twice
    assert llm.temperature == 0.0  # the caller's LLM is as it was


def test_without_a_temperature_ten_prompts_are_answered_and_a_warning_says_so(host, writer):
    with pytest.warns(DrillrankWarning, match="no temperature that can be set") as caught:
        host.retrieve(host.plain(writer=writer), preset="paper")
    assert len([one for one in caught if issubclass(one.category, DrillrankWarning)]) == 1
    assert writer.prompts == sorted(ASKED)
    assert writer.temperatures == {0.0}


def test_explicit_settings_win_over_the_preset(host, writer):
    settings = {"temperature": 0.5, "prompts": ("Write. {question}", "Say. {question}")}
    host.retrieve(host.sampling(writer=writer), preset="paper", n_generated=4, settings=settings)
    assert writer.prompts == sorted([f"Write. {QUESTION}", f"Say. {QUESTION}"] * 2)
    assert writer.temperatures == {0.5}


def test_without_a_preset_the_llm_keeps_its_temperature(host, writer):
    host.retrieve(host.sampling(writer=writer, temperature=0.3))
    assert (writer.prompts, writer.temperatures) == (sorted(ASKED[:3]), {0.3})
    writer.calls.clear()
    host.retrieve(host.sampling(writer=writer), n_generated=2, settings={"temperature": 0.7})
    assert (writer.prompts, writer.temperatures) == (ASKED[:1] * 2, {0.7})


def test_wrapped_models_of_langchain_sample_and_other_runnables_do_not(writer):
    llm = SamplingLangChainText(writer=writer)
    for wrapped in (llm.with_retry(), llm.with_config(tags=["a"]), llm.with_fallbacks([llm])):
        LangChain.retrieve(wrapped, n_generated=2, preset="paper")
        assert (writer.prompts, writer.temperatures) == (ASKED[:1] * 2, {SAMPLING_TEMPERATURE})
        writer.calls.clear()
    for other in (RunnableLambda(llm.invoke), llm.with_fallbacks([LangChainText(writer=writer)])):
        with pytest.warns(DrillrankWarning, match="no temperature"):
            LangChain.retrieve(other, n_generated=2, preset="paper")
        assert (writer.prompts, writer.temperatures) == (ASKED[:2][::-1] if ASKED[0] > ASKED[1] else ASKED[:2], {0.0})
        writer.calls.clear()


def test_the_current_default_llm_of_llama_index_samples(writer, monkeypatch):
    monkeypatch.setattr(Settings, "_llm", SamplingLlamaIndexLLM(writer=writer))
    retriever = llama_index_ext.BRMGRRetriever(OneNode(), preset="paper", n_generated=2)
    asyncio.run(retriever.aretrieve(QUESTION))
    assert (writer.prompts, writer.temperatures) == (ASKED[:1] * 2, {SAMPLING_TEMPERATURE})
    monkeypatch.setattr(Settings, "_llm", SamplingLlamaIndexLLM(writer=writer, temperature=0.2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        llama_index_ext.BRMGRRetriever(OneNode(), n_generated=1).retrieve(QUESTION)
    assert writer.calls[-1] == (ASKED[0], 0.2)
