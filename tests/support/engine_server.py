"""A server of vLLM on this machine, as rbpx asks one; it answers from a checkpoint, and misbehaves on request.

Its answers are made from vLLM's documented schema (docs.vllm.ai: OpenAI-compatible server, `prompt_logprobs`,
`return_token_ids`) and not recorded; test_engines.py compares them with some that were. `rank` counts the
log-probabilities that are at least the token's own, and the first token has none. The numbers come from transformers
alone, one prompt after the other, by whole logits.
"""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.loopback import Handler, served

Answer = tuple[int, bytes]
SILENT_S = 3.0  # what a server that stays silent waits, longer than a test lets it


@dataclass
class Engine:
    """A server with one model, or with several, as a gateway in front of some servers has them.

    Attributes:
        folder: of its checkpoint.
        name: under which the model is asked for; its folder, as where no name is given to `vllm serve`.
        version: that it says.
        context: tokens of prompt and answer.
        dtype: that it computes in.
        temperature: by which it divides logits, 1 for an engine that is right.
        beside: folders of more models, each served under its folder.
        drift: nats by which log-probabilities of a prompt fall for each prompt before it in its request, and whether a
            rank rises by one for each; 0 for an engine whose answers hang on nothing but the prompt.
        mood: of its completions: `well`, `500`, `503`, `hangs up`, `half an answer`, `silent`, `no json`,
            `too few tokens`, `other tokens`, `clamped`, `rank excluded`.
        n_well: completions that are answered well before the mood begins.
        n_spoilt: completions that the mood lasts; for ever where None.
        asked: path and body of each request, with the header that holds its key.
    """

    folder: Path
    name: str
    version: str = "0.32.0"
    context: int | None = 2048
    dtype: str = "float32"
    temperature: float = 1.0
    beside: tuple[Path, ...] = ()
    drift: float = 0.0
    mood: str = "well"
    n_well: int = 0
    n_spoilt: int | None = None
    asked: list[tuple[str, Any, str | None]] = field(default_factory=list)
    url: str = ""
    _models: dict[str, Any] = field(default_factory=dict)

    def answer(self, path: str, body: Any) -> Answer:
        """What the server says."""
        if path == "/version":
            return _json(200, {"version": self.version})
        if path == "/v1/models":
            card = {"object": "model", "max_model_len": self.context}
            cards = [card | {"id": name, "root": str(folder)} for name, folder in self._folders().items()]
            return _json(200, {"object": "list", "data": cards})
        if body["model"] not in self._folders():
            told = {"message": f"The model `{body['model']}` does not exist.", "type": "NotFoundError", "code": 404}
            return _json(404, {"error": told})
        choices = [self._choice(body["model"], at, ids) for at, ids in enumerate(body["prompt"])]
        return _json(200, {"id": "cmpl-1", "object": "text_completion", "model": body["model"], "choices": choices})

    def _folders(self) -> dict[str, Path]:
        return {self.name: self.folder, **{str(folder): folder for folder in self.beside}}

    def _choice(self, name: str, index: int, ids: list[int]) -> dict[str, Any]:
        import torch
        from transformers import AutoModelForCausalLM

        if name not in self._models:
            model = AutoModelForCausalLM.from_pretrained(self._folders()[name], dtype=getattr(torch, self.dtype))
            self._models[name] = model.eval()
        with torch.inference_mode():
            logits_TV = self._models[name](torch.tensor([ids])).logits[0].float() / self.temperature
        logprobs_TV = logits_TV.log_softmax(-1)
        told: list[dict[str, Any] | None] = [None]
        for at, token in enumerate(ids[1:]):
            own = logprobs_TV[at, token]
            rank = int((logprobs_TV[at] >= own).sum())
            if self.drift:
                own, rank = own - self.drift * index, min(rank + index, logits_TV.shape[-1])
            told.append({str(token): {"logprob": float(own), "rank": rank, "decoded_token": "x"}})
        choice = {"index": index, "text": "x", "finish_reason": "length", "prompt_logprobs": told}
        return choice | {"prompt_token_ids": ids, "token_ids": [0]}


def _json(status: int, value: Any) -> Answer:
    return status, json.dumps(value).encode()  # as Python's json does, NaN is written


def _spoilt(mood: str, answer: Answer) -> Answer:
    """An answer to a completion in some mood of the server."""
    if mood in ("500", "503"):
        told = {"message": "EngineCore encountered an issue.", "type": "InternalServerError"}
        return _json(int(mood), {"error": told})
    if mood == "no json":
        return 200, b"<html>Bad gateway</html>"
    value = json.loads(answer[1])
    choice = value["choices"][-1]
    told = choice["prompt_logprobs"]
    last = next(iter(told[-1]))
    if mood == "too few tokens":
        told.pop()
    elif mood == "other tokens":
        choice["prompt_token_ids"] = [ids + 1 for ids in choice["prompt_token_ids"]]
    else:
        told[-1][last] |= {"clamped": {"logprob": -9999.0}, "rank excluded": {"rank": 250, "logprob": -0.1}}[mood]
    return _json(200, value)


@contextmanager
def serving(engine: Engine) -> Iterator[Engine]:
    """Serve on loopback while the block lasts."""

    class Answering(Handler):
        def do_GET(self) -> None:
            raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            body = json.loads(raw) if raw else None
            engine.asked.append((self.path, body, self.headers.get("Authorization")))
            status, content = engine.answer(self.path, body)
            length = len(content)
            n_before = sum(path == "/v1/completions" for path, *_ in engine.asked) - 1
            is_over = engine.n_spoilt is not None and n_before >= engine.n_well + engine.n_spoilt
            if body is not None and engine.mood != "well" and n_before >= engine.n_well and not is_over:
                if engine.mood == "hangs up":
                    return
                if engine.mood == "silent":
                    time.sleep(SILENT_S)
                    return
                if engine.mood == "half an answer":
                    content = content[: length // 2]
                else:
                    status, content = _spoilt(engine.mood, (status, content))
                    length = len(content)
            self.say(status, {"Content-Length": str(length)}, content)

        do_POST = do_GET

    with served(Answering) as engine.url:
        yield engine
