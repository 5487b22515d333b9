"""Plain float64 versions of the statistics, and a Markov chain tilted by a known reward."""

from __future__ import annotations

import itertools

import numpy as np
import torch


def log_softmax(logits: np.ndarray) -> np.ndarray:
    shifted = logits - logits.max(axis=1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))


def plain_statistics(logits: list[np.ndarray], ids: np.ndarray) -> dict[str, np.ndarray]:
    """Word by word as the definitions read; two laws meet over the words that both have."""
    laws = [log_softmax(side) for side in logits]
    own, other = laws[0], laws[-1]
    rows = np.arange(len(ids))
    shared = min(own.shape[1], other.shape[1])
    weights = np.exp(other[:, :shared])
    weights /= weights.sum(axis=1, keepdims=True)
    mean = (weights * own[:, :shared]).sum(axis=1)
    found = {
        "log_p": own[rows, ids],
        "rank": np.array([1 + sum(entry > line[i] for entry in line) for line, i in zip(logits[0], ids, strict=True)]),
        "entropy": -(np.exp(own) * own).sum(axis=1),
        "mean": mean,
        "variance": (weights * (own[:, :shared] - mean[:, None]) ** 2).sum(axis=1),
    }
    return found | ({"log_q": other[rows, ids]} if len(logits) == 2 else {})


class TiltedChain:
    """A Markov chain rho over a few words and pi(b | a) ~ rho(b | a) exp(R[a, b] / beta); the first word is free."""

    def __init__(self, rng: np.random.Generator, *, n_words: int = 6, beta: float = 2.0) -> None:
        self.rng, self.beta, self.n_words = rng, beta, n_words
        self.rho = rng.dirichlet(np.ones(n_words), n_words)
        self.rewards = rng.normal(0, 1, (n_words, n_words))
        tilted = self.rho * np.exp(self.rewards / beta)
        self.z = tilted.sum(axis=1)
        self.pi = tilted / self.z[:, None]

    def texts(self, law: np.ndarray, count: int, length: int) -> list[list[int]]:
        """Texts of ``length`` words after a first one that is drawn evenly."""
        found = []
        for _ in range(count):
            text = [int(self.rng.integers(self.n_words))]
            for _ in range(length):
                text.append(int(self.rng.choice(self.n_words, p=law[text[-1]])))
            found.append(text)
        return found

    def log_probs(self, law: np.ndarray, text: list[int]) -> np.ndarray:
        return np.log(law[text[:-1], text[1:]])

    def reward(self, text: list[int]) -> float:
        return float(self.rewards[text[:-1], text[1:]].sum())

    def log_normalisers(self, text: list[int]) -> float:
        return float(np.log(self.z[text[:-1]]).sum())

    def logits(self, text: list[int]) -> tuple[list[torch.Tensor], torch.Tensor]:
        """What two models would say: both laws' logarithms, off by a constant that softmax takes away."""
        sides = [torch.tensor(np.log(law[text[:-1]]) + 1.5, dtype=torch.float32) for law in (self.pi, self.rho)]
        return sides, torch.tensor(text[1:])

    def all_texts_tilted(self, length: int) -> tuple[list[tuple[int, ...]], np.ndarray, np.ndarray, np.ndarray, float]:
        """Every text of ``length`` words after word 0, with rho, the tilted law over whole texts, and log Z."""
        texts = list(itertools.product(range(self.n_words), repeat=length))
        log_rho = np.array([self.log_probs(self.rho, [0, *text]).sum() for text in texts])
        reward = np.array([self.reward([0, *text]) for text in texts])
        unnormalised = log_rho + reward / self.beta
        log_z = float(np.log(np.exp(unnormalised).sum()))
        return texts, log_rho, unnormalised - log_z, reward, log_z
