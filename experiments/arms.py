"""The study `arms`: points of measured models in, what each contestant predicts of the largest size out.

    python experiments/arms.py judge experiments/arms.csv

The points were taken by rbpx 0.4.0, the last version that measures losses at other temperatures.

A contestant is a feature f > 0 that falls as models get better. Step 1, on the judged arm and text: ln f is a line in
ln S over all sizes but the largest, and gives f there. Step 2, on the arm and text that are learned from, over the same
sizes: success is chance + (1 - chance) exp(-A f^b). Chained, they predict a success that neither has seen; `given` is
step 2 of the feature as measured at the largest size. Each seed is a ladder of its own. The error of a share is
|ln predicted - ln measured|, that of accuracy |predicted - measured|.

Another table is of models that were altered, learned from plain ones: their logits divided by 0.8, read in bfloat16,
or trained with a vocabulary of 1,024.
"""

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
from lmfit import Parameters, minimize
from numpy.typing import NDArray
from scipy.stats import t as students_t

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from rbpx.laws.numeric import line

COLUMNS: Final = ["arm", "text", "size", "S", "seed", "quantity", "value"]
PLAIN: Final = "plain"
ARMS: Final = (PLAIN, "label_smoothing_0.1")
CONTESTANTS: Final = ("RBP", "CE", "CE at T*", "bits per byte")  # the last one is the second, in one vocabulary
SHARPENED: Final = 0.8  # the temperature of one alteration: plain models are too sure already
TARGETS: Final = {  # success -> the k at which its tokens count as right
    "exact match of 2": 1,  # after the fact: of 5 tokens none was right on pydoc, at any size
    "exact match of 5": 1,
    "exact match of 10": 1,
    "exact match of 5 at 10": 10,
    "exact match of 10 at 10": 10,
    "RBP_1": 1,
    "RBP_10": 10,
    "accuracy": 1,
}
CHANCE: Final = {"python_identifiers": 1 / 3, "python_keywords": 1 / 3, "python_brackets": 1 / 2}
_LEAST_SIZES: Final = 3  # of a line

Curve = Callable[[float], float]
Floats = NDArray[np.float64]


def power(x: Floats, y: Floats) -> Curve:
    """The curve C x^b through points of positive x and y, a line in logs; NaN for fewer than three points."""
    known = (x > 0) & (y > 0) & np.isfinite(x) & np.isfinite(y)
    if known.sum() < _LEAST_SIZES:
        return lambda at: math.nan
    ln_x, ln_y = np.log(x[known]), np.log(y[known])
    level, fall = line(ln_x, ln_y)
    return lambda at: math.exp(level - fall * (math.log(at) - ln_x.mean()))


_STEEPEST: Final = 20.0  # |b|: a step between two sizes, which no points tell from a steeper one


def success(feature: Floats, measured: Floats, chance: float) -> Curve:
    """The curve chance + (1 - chance) exp(-A f^b), fitted to measured successes.

    Without chance it is a line in logs, of ln(-ln success) on ln f, over the sizes that had any success. With chance,
    below which small models may lie, it is least squares of success, from that line over the sizes above chance.
    """
    known = np.isfinite(feature) & (feature > 0)  # a model without any hit of a task has no -ln RBP
    feature, measured = feature[known], measured[known]
    if known.sum() < _LEAST_SIZES:
        return lambda f: math.nan
    above = (measured - chance) / (1 - chance)
    start = power(feature, -np.log(np.where(above > 0, above, np.nan)))
    if chance == 0:
        return lambda f: math.exp(-start(f))
    centre = math.exp(np.log(feature).mean())
    level, ahead = start(centre), start(centre * math.e)
    parameters = Parameters()
    parameters.add("ln_A", value=math.log(level) if math.isfinite(level) else 0.0)
    b = math.log(ahead / level) if math.isfinite(level) else 1.0
    parameters.add("b", value=min(max(b, -_STEEPEST), _STEEPEST), min=-_STEEPEST, max=_STEEPEST)

    def curve(of: Any, f: Any) -> Any:
        return chance + (1 - chance) * np.exp(-np.exp(of["ln_A"] + of["b"] * np.log(f / centre)))

    # To the end of what doubles tell: where the library stops by itself depends on the processor.
    ends: dict[str, Any] = {"jac": "3-point", "ftol": 1e-15, "xtol": 1e-15, "gtol": 1e-15, "max_nfev": 10_000}
    with np.errstate(invalid="ignore"):  # of standard errors, which nobody asks for
        fit = minimize(
            lambda of: curve(of.valuesdict(), feature) - measured,
            parameters,
            method="least_squares",
            calc_covar=False,
            **ends,
        )
    best = fit.params.valuesdict()
    return lambda f: float(curve(best, f))


@dataclass(frozen=True)
class Ladder:
    """The sizes of one arm, text and seed in order of S: quantity -> values; the last is the one that is held out."""

    arm: str
    text: str
    seed: int
    S: Floats
    values: dict[str, Floats]

    @property
    def chance(self) -> float:
        """Accuracy of guessing; 0 of a text, which is no task."""
        return CHANCE.get(self.text, 0.0)

    def feature(self, contestant: str, k: int) -> Floats:
        """What falls as models get better: -ln RBP_k, infinite without a hit, or a cross-entropy."""
        with np.errstate(divide="ignore"):
            return -np.log(self.values[f"RBP_{k}"]) if contestant == "RBP" else self.values[contestant]

    def differs(self, other: "Ladder") -> str:
        """In what it is not the other."""
        parts = [name for name in ("arm", "text") if getattr(self, name) != getattr(other, name)]
        return ", ".join(f"other {name}" for name in parts) or "none"


def ladders(table: pd.DataFrame) -> list[Ladder]:
    """The ladders of a table, as `COLUMNS`, that reach its largest size."""
    wide = table.pivot_table(index=["arm", "text", "seed", "S"], columns="quantity", values="value").reset_index()
    found = []
    for (arm, text, seed), rows in wide.groupby(["arm", "text", "seed"]):
        if rows["S"].max() == wide["S"].max():
            values = rows.drop(columns=["arm", "text", "seed", "S"]).dropna(axis="columns")
            columns = {str(name): values[name].to_numpy(np.float64) for name in values}
            found.append(Ladder(arm, text, int(seed), rows["S"].to_numpy(np.float64), columns))
    return found + [sharpened(each) for each in found if each.arm == PLAIN and f"CE at {SHARPENED}" in each.values]


def sharpened(plain: Ladder) -> Ladder:
    """The same models with their logits divided by a temperature: no rank moves, nor the loss at the best temperature.

    Accuracy is left out, since the choices of an item were scored at a temperature of 1 alone.
    """
    cross_entropy = plain.values[f"CE at {SHARPENED}"]
    moved = {"CE": cross_entropy, "bits per byte": plain.values["bits per byte"] * cross_entropy / plain.values["CE"]}
    values = {name: value for name, value in (plain.values | moved).items() if name != "accuracy"}
    return replace(plain, arm=f"{PLAIN}, logits / {SHARPENED}", values=values)


def judge(table: pd.DataFrame) -> pd.DataFrame:
    """What each contestant predicts of the largest size, for each target, seed, and pair of what is learned and judged.

    Args:
        table: with the columns of `COLUMNS`.

    Returns:
        A row for each; `predicted` is chained, `given` has the measured feature, `error` and `error_given` are theirs.
    """
    rows = []
    every = product(product(ladders(table), repeat=2), TARGETS.items(), CONTESTANTS)
    for (learned, judged), (target, k), contestant in every:
        is_asked = learned.seed == judged.seed and target in learned.values and target in judged.values
        if not is_asked or (learned.text in CHANCE) != (judged.text in CHANCE):
            continue
        if judged.text in CHANCE and (target != "accuracy" or learned.text != judged.text):
            continue  # of a task its accuracy counts, and no other task has the same
        to_success = success(learned.feature(contestant, k)[:-1], learned.values[target][:-1], learned.chance)
        feature, measured = judged.feature(contestant, k), float(judged.values[target][-1])
        predicted = to_success(power(judged.S[:-1], feature[:-1])(float(judged.S[-1])))
        given = to_success(float(feature[-1]))
        rows.append(
            {
                "target": target,
                "contestant": contestant,
                "learned_arm": learned.arm,
                "learned_text": learned.text,
                "arm": judged.arm,
                "text": judged.text,
                "seed": judged.seed,
                "across": judged.differs(learned),
                "measured": measured,
                "predicted": predicted,
                "given": given,
                "error": _error(predicted, measured, target),
                "error_given": _error(given, measured, target),
            }
        )
    return pd.DataFrame(rows)


def _error(predicted: float, measured: float, target: str) -> float:
    """The error of a prediction; NaN where a share was measured to be 0, or nothing could be predicted."""
    if target == "accuracy":
        return abs(predicted - measured)
    return abs(math.log(predicted / measured)) if predicted > 0 and measured > 0 else math.nan


def summary(judged: pd.DataFrame) -> pd.DataFrame:
    """Mean error by target, contestant and what differs, its sd over seeds, and how much worse than RBP it is.

    The errors of a seed are averaged over the directions (which arm and text is learned from); `worse` is the paired
    difference to RBP's, with its t interval over seeds. `way` is chained, or step 2 of the feature as measured. What no
    seed could be judged by is left out.
    """
    of_arms = judged["arm"].isin(ARMS) & judged["learned_arm"].isin(ARMS) & (judged["contestant"] != "bits per byte")
    return _over_seeds(judged[of_arms], ["target", "across"])


def robustness(judged: pd.DataFrame) -> pd.DataFrame:
    """The same for models that were altered, as learned from plain ones on the same text."""
    of_altered = ~judged["arm"].isin(ARMS) & (judged["learned_arm"] == PLAIN) & (judged["across"] == "other arm")
    return _over_seeds(judged[of_altered], ["target", "arm"])


def _over_seeds(judged: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    """The rows of `summary`, one for each value of these names, way and contestant."""
    places = [*names, "contestant", "seed"]
    errors = judged.set_index(places)[["error", "error_given"]].set_axis(["chained", "given"], axis="columns")
    errors = errors.reset_index().melt(places, var_name="way", value_name="error").dropna(subset="error")
    keys = [*names, "way"]
    by_seed = errors.groupby([*keys, "contestant", "seed"])["error"].mean().unstack("contestant")
    rows = []
    for contestant in by_seed:
        for of, error in by_seed[contestant].dropna().groupby(keys):
            worse = (error - by_seed["RBP"]).dropna()
            n = len(worse)
            half = float(students_t.ppf(0.975, n - 1)) * worse.std() / math.sqrt(n) if n > 1 else math.nan
            rows.append(
                dict(zip(keys, of, strict=True))
                | {
                    "contestant": contestant,
                    "seeds": len(error),
                    "error": error.mean(),
                    "sd": error.std(),
                    "worse": worse.mean(),
                }
                | {"worse_lo": worse.mean() - half, "worse_hi": worse.mean() + half}
            )
    order = {name: place for place, name in enumerate((*TARGETS, *CONTESTANTS))}
    return pd.DataFrame(rows).sort_values(
        [*keys, "contestant"], key=lambda each: each.map(lambda name: (order.get(name, -1), name))
    )


def calibration(table: pd.DataFrame) -> pd.DataFrame:
    """The best temperature and the share of hits of each size, arm and text: mean and sd over seeds."""
    of_arms = table[table["arm"].isin(ARMS) & table["quantity"].isin(["T*", "RBP_1", "accuracy"])]
    rows = of_arms.groupby(["text", "S", "size", "quantity", "arm"])["value"].agg(["mean", "std"])
    return rows.unstack("arm").swaplevel(axis="columns").sort_index(axis="columns").reset_index()


def main(words: list[str]) -> None:
    """The judgement of points, to stdout."""
    match words:
        case ["judge", path]:
            table = pd.read_csv(path)
            judged = judge(table)
            for rows in (calibration(table), summary(judged), robustness(judged)):
                print(rows.round(3).to_string(index=False), end="\n\n")
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
