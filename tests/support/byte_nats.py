"""Nats of each byte of a text, by a loop over its tokens."""

from typing import Any

from rbpx.questions.compare.meeting import RunTokens


def byte_nats(tokens: RunTokens) -> dict[tuple[int, int], float]:
    """Nats of each byte, by a loop; a token without bytes gives its nats to the one before it, if there is one."""
    owned: list[list[Any]] = []
    for doc, begin, length, nats in zip(tokens.doc_N, tokens.begin_N, tokens.length_N, tokens.nats_N, strict=True):
        if length:
            owned.append([doc, begin, length, nats])
        elif owned and owned[-1][0] == doc and owned[-1][1] + owned[-1][2] == begin:
            owned[-1][3] += nats
    return {(doc, begin + i): nats / length for doc, begin, length, nats in owned for i in range(length)}
