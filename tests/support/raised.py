"""A world for each status, in words, and what raises it there; docs/reference/statuses.md names them."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from rbpx.laws import public
from rbpx.laws.families.multiplier import Offset, fit_multiplier
from rbpx.laws.names import Method
from rbpx.laws.power.fixed_parameters import fit_law_with_priors
from rbpx.laws.power.law import fit_power_law
from rbpx.laws.prediction.prediction import average_forms
from rbpx.laws.prediction.verdict import backtest, judge, judge_averaged
from rbpx.laws.priors import Prior
from rbpx.laws.ranks.lognormal import fit_paper
from rbpx.laws.schedule.ending import predict_ending
from rbpx.laws.schedule.law import Training
from rbpx.laws.surface.fit import fit_surface
from rbpx.laws.surface.runs import Runs
from rbpx.status import Status
from tests.support.asking import ask, imported
from tests.support.schedules import rates, run
from tests.support.surfaces import grid, law
from tests.support.synthetic import Truth, write_store

Found = Iterable[Status | str | None]

S: Final = np.logspace(6, 9, 7)
NOISE: Final = np.array([1, -1, 0.5, 1, -0.5, -1, 0.5])
FROZEN: Final = Path(__file__).parent.parent / "same_answers"


@dataclass(frozen=True)
class Raised:
    """A world in words, and the statuses that hold there; a folder is given where it needs a store."""

    says: str
    found: Callable[[Path], Found]


def power(alpha: float = 0.1, scatter: float = 0.01) -> np.ndarray:
    """The points of a power law with scatter."""
    return np.asarray(5 * S**-alpha * np.exp(scatter * NOISE))


def _judged(y: ArrayLike, tokens: Sequence[float] | None = None) -> Found:
    points, sizes = np.asarray(y, float).tolist(), S.tolist()[: len(np.asarray(y))]
    tests = backtest(lambda m: fit_power_law(sizes[:m], points[:m]), sizes, points)
    return judge(fit_power_law(sizes, points), tests, None, tokens)


def _with_largest(share: float) -> np.ndarray:
    """The law, with the largest size at a share of the next smaller one."""
    y = power()
    y[-1] = share * y[-2]
    return y


def _tokens_of_largest(share: float) -> Found:
    return _judged(power(), [*(20 * S[:-1]), share * 20 * S[-1]])


def _surface(S_N: np.ndarray, D_N: np.ndarray, y_N: np.ndarray) -> Found:
    return fit_surface(Runs.of(S_N, D_N, y_N), n_replicates=0).reasons


def _far() -> Found:
    y = power().tolist()
    (answer,) = average_forms(S.tolist(), y, [1e11]) or ()
    return judge_averaged((), answer, S.tolist(), y, ())


def _given() -> Found:
    y = 1.7 + 400 * S**-0.34 * np.exp(0.003 * NOISE)
    return judge(fit_law_with_priors(S, y, None, Method.offset, {"E": Prior(1.0)}))


def _below_E() -> Found:
    y, variant = 1.5 + 100 * S**-0.27, 1.1 + 100 * S**-0.27
    _, at = fit_multiplier((S[:5], S), (y[:5], variant), offset=Offset.free)
    return [each["status"] for each in at]


def _fitted(store: Path, verb: str = "fit", **keys: object) -> Found:
    return [reason for row in ask(store, verb, **keys).rows for reason in row["params"]["reasons"]]


def _of_documents(root: Path, n: int, in_order: bool = False) -> Found:
    """A measured store of five sizes; documents in order are alike where they are of one text."""
    of_text = [d // 6 for d in range(n)] if in_order else None
    truth = Truth(S=(1_000, 10_000, 100_000, 1_000_000, 10_000_000), shared=0.6 if in_order else 0.0)
    write_store(root, truth, 1, n_documents=n, n_tokens=150, sources=[str(d) for d in range(n)], of_text=of_text)
    return _fitted(root, k=1, laws=["rbp"], resamples=40)


def with_states(store: Path, **columns: object) -> Path:
    """Four trainings of each of three sizes, of which the longest have two states before their end."""
    rows = [
        {"model": f"{S:g}-{ratio}", "S": S, "D": (D := S * ratio * part), **columns}
        | {"loss_nats": 1.7 + 400 / S**0.34 + 410 / D**0.28 + 0.1 * (part < 1)}
        for S, ratio, part in product((6e7, 2.4e8, 9.6e8), (5, 20, 80, 320), (0.25, 0.5, 1))
        if part == 1 or ratio == 320
    ]
    return imported(store, rows, dataset="c4")


def _of_states(root: Path) -> Found:
    return _fitted(with_states(root, lr=1e-3), "surface", resamples=1, form="kaplan", objective="least_squares")


def _recorded(name: str) -> Found:
    """The statuses of a recorded answer of a frozen store."""
    answers = json.loads((FROZEN / f"{name}.json").read_text(encoding="utf-8"))
    return [
        value for asked in answers.values() for row in asked["rows"] for value in row.values() if value in {*Status}
    ]


UNDERWAY: Final = run(seed=9).until(12000)
FINISHED: Final = [run("wsd", 1), run("constant", 2, steps=40000)]
_RISEN: Final = replace(UNDERWAY, loss_N=UNDERWAY.loss_N + 0.1 * (UNDERWAY.step_N > 10400))
_TWICE: Final = np.r_[rates(steps=10000), rates(steps=10000)]
ENDINGS: Final[Mapping[Status, tuple[str, Training, Sequence[Training]]]] = {
    Status.rate_rises: (
        "a plan that warms up twice", Training(_TWICE, UNDERWAY.step_N, UNDERWAY.loss_N, 1e8), FINISHED,
    ),
    Status.too_early: ("a run at 2,500 of 24,000 steps, of which 1,000 warm up", run(seed=9).until(2500), []),
    Status.leaves_law: ("a run whose losses are .1 higher from step 10,500 of 24,000 on", _RISEN, FINISHED),
    Status.no_decay_seen: (
        "a run at the peak, and finished runs that stay there",
        run("wsd", 9).until(18000),
        [run("constant", 1), run("constant", 2, steps=40000)],
    ),
    Status.plan_unlike_finished: (
        "a plan ten times as long as that of the finished run",
        run("wsd", 9, steps=240000, every=1000).until(120000),
        [run("wsd", 1)],
    ),
    Status.other_size: (
        "finished runs of 40M parameters, a run of 100M", UNDERWAY, [replace(of, S=4e7) for of in FINISHED],
    ),
}  # fmt: skip

_S20, _D20 = grid(5, 4)
_OF_LAWS: Final[dict[Status, Raised]] = {
    Status.ok: Raised("a power law at 7 sizes, scatter 1 %", lambda _: [*_judged(power())] or [Status.ok]),
    Status.too_few_sizes: Raised("two sizes", lambda _: _judged([3, 2])),
    Status.not_positive: Raised("a loss of 0 at one of four sizes", lambda _: _judged([1, 0.8, 0.5, 0])),
    Status.sign_change: Raised(
        "a term of 1, .5, -.2 and -.4", lambda _: [fit_power_law(S[:4], [1, 0.5, -0.2, -0.4], signed=True).status]
    ),
    Status.not_converged: Raised(
        "an offset through 2, 1, 1 and 1", lambda _: [fit_power_law(S[:4], [2, 1, 1, 1], None, Method.offset).status]
    ),
    Status.too_few_tokens: Raised("tokens of ranks 2 and 3 alone", lambda _: [fit_paper([2, 3, 3], [1, 1, 1]).status]),
    Status.not_known: Raised(
        "ranks of 2, 3.5, 4 and 9 for a lognormal", lambda _: [fit_paper([2, 3.5, 4, 9], [1, 1, 1, 1]).status]
    ),
    Status.unreachable: Raised("a variant with losses below the baseline's E", lambda _: _below_E()),
    Status.mixed: Raised("12 runs, the longest with states amid their training that lie .1 higher", _of_states),
    Status.no_trend: Raised("3, 3.1 and 2.95 at three sizes", lambda _: _judged([3, 3.1, 2.95])),
    Status.bends: Raised(
        "ln y a parabola of ln S", lambda _: _judged(power(scatter=0) * np.exp(0.003 * np.log(S / S[3]) ** 2))
    ),
    Status.backtest_failed: Raised(
        "a power law whose largest size is 2 % above the next", lambda _: _judged(_with_largest(1.02))
    ),
    Status.intervals_missed: Raised(
        "a power law whose largest size is 2 % above the next", lambda _: _judged(_with_largest(1.02))
    ),
    Status.given_refused: Raised("y = 1.7 + 400 S^-.34, and E=1", lambda _: _given()),
    Status.one_run: Raised(
        "a power law with one size 10 % off", lambda _: _judged(power(scatter=0.001) * (1 + 0.1 * (S == S[2])))
    ),
    Status.uneven_scatter: Raised(
        "a power law whose scatter grows as S^.87",
        lambda _: _judged(power(scatter=0) * np.exp(1e-4 * NOISE * (S / S[0]) ** 0.87)),
    ),
    Status.tokens: Raised("the largest of 7 sizes with half of its tokens", lambda _: _tokens_of_largest(0.5)),
    Status.collinear_design: Raised(
        "20 tokens for a parameter at every size", lambda _: _surface(_S20, 20 * _S20, law(_S20, 20 * _S20))
    ),
    Status.families_differ: Raised(
        "two drawn families (`multiplier` in the frozen store trainings)", lambda _: _recorded("trainings-multiplier")
    ),
    Status.not_judged: Raised("judge=False", lambda _: [public.fit_power_law(S, power(), judge=False).status]),
    Status.barely_determined: Raised("exponent .02, scatter 3 %", lambda _: _judged(power(0.02, 0.03))),
    Status.one_document: Raised("one document at five sizes", lambda root: _of_documents(root, 1)),
    Status.dependent_documents: Raised(
        "48 documents, each six in a row from one text", lambda root: _of_documents(root, 48, True)
    ),
    Status.at_bound: Raised(
        "a surface with E = -.02", lambda _: _surface(_S20, _D20, 50 * _S20**-0.2 + 900 * _D20**-0.3 - 0.02)
    ),
    Status.beyond: Raised("7 sizes to 1e9, and a prediction at 1e11", lambda _: _far()),
    Status.other_recipe: Raised(
        "a run whose finished runs are of another variant (`trajectory` in the frozen store underway)",
        lambda _: _recorded("underway-trajectory"),
    ),
}  # fmt: skip
RAISED: Final = _OF_LAWS | {
    status: Raised(says, lambda _, at=(seen, finished): [predict_ending(*at).status])  # type: ignore[misc]
    for status, (says, seen, finished) in ENDINGS.items()
}
