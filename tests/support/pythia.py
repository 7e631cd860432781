"""What the RBP paper prints of Pythia on Wikipedia."""

import math

# Read off figure 8a of the RBP paper.
PYTHIA_S = [1189888, 4739072, 18915328, 85056000, 302311424]
PYTHIA_S += [805736448, 1208602624, 2517652480, 6444163072, 11327027200]
PYTHIA_CE = [4.171, 3.751, 3.345, 2.906, 2.498, 2.325, 2.235, 2.119, 2.023, 1.960]
PYTHIA_RBP_1 = [0.3329, 0.3714, 0.4083, 0.4594, 0.5056, 0.5266, 0.5391, 0.5554, 0.5681, 0.5785]


def neg_ln(values: list[float]) -> list[float]:
    """-ln of shares."""
    return [-math.log(value) for value in values]
