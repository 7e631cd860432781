"""Laws of windows of hits, and documents drawn from one."""

import numpy as np

S = np.array([1e6, 4e6, 2e7, 1e8, 5e8, 2e9])
LENGTHS = [1, 5, 10, 50, 100]


def law(C: float, alpha: float, noise_MN: np.ndarray | float = 0.0) -> np.ndarray:
    """p of the joint law at S and LENGTHS, with noise on ln(-ln p)."""
    return np.exp(-C * np.array(LENGTHS) * S[:, None] ** -alpha * np.exp(noise_MN))


def documents(rng: np.random.Generator, alpha: float) -> list[tuple[np.ndarray, np.ndarray]]:
    """Windows of hits and all windows of 80 documents at each size, of an ease that is the same at every size."""
    tokens_D, ease_D = rng.integers(150, 512, size=80), rng.normal(0, 0.3, size=80)
    total_DN = np.maximum(0, tokens_D[:, None] - np.array([1, 5, 10]) + 1)
    scale = np.exp(-(0.3**2) / 2)
    p_MDN = np.exp(-scale * 0.4 * (S[:, None, None] / 1e6) ** -alpha * np.exp(ease_D)[:, None] * np.array([1, 5, 10]))
    return [(rng.binomial(total_DN, p_DN), total_DN) for p_DN in p_MDN]
