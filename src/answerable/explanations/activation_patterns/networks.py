"""Training and evaluation of the small networks of one neural additive model.

A step on a network of 16 units is some thousand operations for each row, too few for a library that is called once for
each of them. Here a learner is trained by one compiled call: its rows are taken in blocks whose activations stay in the
processor's cache, the products are BLAS products, and whatever is done to each unit - bias, rectifier, dropout, their
derivatives - happens while it is there. Learners know nothing of each other and may be trained side by side.

A network's weights are one row of numbers: for each layer a matrix of (units, inputs + 1) whose last column is the
bias, then the weights of the output, which has none. Activations are held as (units + 1, rows), the last of them 1, so
that a product of matrices also adds the bias and, on the way back, sums its gradient. The inputs are the two features
of a pair; the second is 0 for a network of one feature.

Steep first layers (ExU, Agarwal et al. 2021) have units ``clip((x - bend) exp(weight), 0, 1)``: a matrix of (units, 2)
weights, and one bend for each input.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from answerable.compiled import kernel
from answerable.statistics import Floats

MOST_ROWS, FEWEST_ROWS = 256, 64  # of a block
CACHE_NUMBERS = 1 << 18  # activations that stay in the cache
FORGET, FORGET_SQUARES, LITTLE = 0.9, 0.999, 1e-8  # of Adam, as everywhere


def n_weights(widths: Sequence[int], *, steep: bool) -> int:
    """Numbers of one network: ``widths`` are those of its hidden layers."""
    first = 2 * widths[0] + 2 if steep else 3 * widths[0]
    return first + sum(b * (a + 1) for a, b in itertools.pairwise(widths)) + widths[-1]


def rows_at_once(n_nets: int, widths: Sequence[int]) -> int:
    """Rows of a block: few where there are many networks, so that their activations stay in the cache."""
    fit = CACHE_NUMBERS // (n_nets * sum(width + 1 for width in widths))
    return max(FEWEST_ROWS, min(MOST_ROWS, fit // 16 * 16))


def first_weights(widths: Sequence[int], paired: Sequence[bool], *, steep: bool, rng: np.random.Generator) -> Floats:
    """(networks, numbers) float32 weights to begin from: He's for rectifiers, those of Agarwal et al. for ExU units."""
    made = []
    for pair in paired:
        if steep:
            # slopes about exp(4) and bends about 0, each cut off at two deviations
            parts = [4.0 + 0.5 * rng.normal(size=2 * widths[0]).clip(-2, 2), 0.5 * rng.normal(size=2).clip(-2, 2)]
        else:
            begin = np.column_stack([rng.normal(size=(widths[0], 2)), rng.uniform(-1, 1, widths[0])])
            begin[:, 1] *= pair
            parts = [begin.ravel()]
        for fan_in, fan_out in itertools.pairwise(widths):
            drawn = rng.normal(size=(fan_out, fan_in)) * (2 / fan_in) ** 0.5
            parts.append(np.column_stack([drawn, np.zeros(fan_out)]).ravel())
        parts.append(rng.normal(size=widths[-1]) * (2 / widths[-1]) ** 0.5)
        made.append(np.concatenate(parts))
    return np.array(made, dtype=np.float32)


@kernel
def _draw(lanes):  # type: ignore[no-untyped-def]
    """Fresh random bits in every lane (xorshift, Marsaglia 2003)."""
    for i in range(len(lanes)):
        x = lanes[i]
        x = np.uint32(x ^ np.uint32(x << np.uint32(13)))
        x = np.uint32(x ^ np.uint32(x >> np.uint32(17)))
        lanes[i] = np.uint32(x ^ np.uint32(x << np.uint32(5)))


@kernel
def _activate(h, n_units, most, cut, lanes):  # type: ignore[no-untyped-def]
    """Cut each unit off at 0 and ``most``, and drop it in cut of 256 rows; the last row of ``h`` becomes 1."""
    m = h.shape[1]
    factor = np.float32(256.0 / (256.0 - cut))
    bits, floor = lanes.view(np.uint8), np.uint8(cut)
    for unit in range(n_units):
        row = h[unit]
        if cut == 0:
            for r in range(m):
                row[r] = min(max(row[r], np.float32(0.0)), most)
            continue
        if unit % 4 == 0:
            _draw(lanes)
        coin = bits[unit % 4 * len(lanes) : unit % 4 * len(lanes) + m]
        for r in range(m):
            value = min(max(row[r], np.float32(0.0)), most) * factor
            row[r] = value if coin[r] >= floor else np.float32(0.0)
    h[n_units] = np.float32(1.0)


@kernel
def _forward(weights, widths, steep, paired, x, held, cut, lanes, out):  # type: ignore[no-untyped-def]
    """Outputs of one network, and its activations in ``held``; ``x`` holds two inputs and ones."""
    m, begin, at, n_in = x.shape[1], 0, 0, 2
    before = x
    most = np.float32(np.inf)
    for layer in range(len(widths)):
        n_out = widths[layer]
        h = held[at : at + (n_out + 1) * m].reshape(n_out + 1, m)
        if layer == 0 and steep:
            for unit in range(n_out):
                rise, other = np.exp(weights[2 * unit]), np.exp(weights[2 * unit + 1]) * paired
                for r in range(m):
                    h[unit, r] = rise * (x[0, r] - weights[2 * n_out]) + other * (x[1, r] - weights[2 * n_out + 1])
            _activate(h, n_out, np.float32(1.0), cut, lanes)
            begin += 2 * n_out + 2
        else:
            w = weights[begin : begin + n_out * (n_in + 1)].reshape(n_out, n_in + 1)
            np.dot(w, before, h[:n_out])
            _activate(h, n_out, most, cut, lanes)
            begin += n_out * (n_in + 1)
        at += (n_out + 1) * m
        before, n_in = h, n_out
    np.dot(weights[begin : begin + n_in], before[:n_in], out)


@kernel
def _backward(weights, widths, steep, paired, x, held, cut, g, room, gradient):  # type: ignore[no-untyped-def]
    """Add to ``gradient`` that of a loss whose derivative by the output is ``g``; ``room`` holds two layers."""
    m, n_layers = x.shape[1], len(widths)
    factor = np.float32(256.0 / (256.0 - cut))
    n_out = widths[n_layers - 1]
    at, begin = 0, len(weights) - n_out
    for layer in range(n_layers - 1):
        at += (widths[layer] + 1) * m
    h = held[at : at + (n_out + 1) * m].reshape(n_out + 1, m)
    gradient[begin:] += np.dot(h[:n_out], g)
    back = room[0, : n_out * m].reshape(n_out, m)
    for unit in range(n_out):
        for r in range(m):
            back[unit, r] = weights[begin + unit] * g[r]
    side = 0
    for layer in range(n_layers - 1, -1, -1):
        clipped = layer == 0 and steep
        most = factor if clipped else np.float32(np.inf)
        for unit in range(n_out):
            for r in range(m):
                value = h[unit, r]
                back[unit, r] *= factor if value > np.float32(0.0) and value < most else np.float32(0.0)
        if clipped:
            _steep_gradient(weights, n_out, paired, x, back, gradient)
            return
        n_in = widths[layer - 1] if layer else 2
        begin -= n_out * (n_in + 1)
        if layer:
            at -= (n_in + 1) * m
            below = held[at : at + (n_in + 1) * m].reshape(n_in + 1, m)
        else:
            below = x
        gradient[begin : begin + n_out * (n_in + 1)] += np.dot(back, below.T).ravel()
        if layer:
            side = 1 - side
            ahead = room[side, : (n_in + 1) * m].reshape(n_in + 1, m)
            w = weights[begin : begin + n_out * (n_in + 1)].reshape(n_out, n_in + 1)
            np.dot(w.T, back, ahead)
            back, h, n_out = ahead[:n_in], below, n_in


@kernel
def _steep_gradient(weights, n_units, paired, x, back, gradient):  # type: ignore[no-untyped-def]
    """Of the first layer of ExU units, whose derivative by their products is ``back``."""
    for unit in range(n_units):
        for k in range(2 if paired else 1):
            rise, bend = np.exp(weights[2 * unit + k]), weights[2 * n_units + k]
            by_weight, by_bend = np.float32(0.0), np.float32(0.0)
            for r in range(x.shape[1]):
                by_weight += back[unit, r] * (x[k, r] - bend)
                by_bend += back[unit, r]
            gradient[2 * unit + k] += by_weight * rise
            gradient[2 * n_units + k] -= by_bend * rise


@kernel
def _take(rows, chosen, first, second, x):  # type: ignore[no-untyped-def]
    """Inputs of one network at chosen rows; ``rows`` is (features, rows), ``second`` -1 for one feature."""
    for r in range(len(chosen)):
        x[0, r] = rows[first, chosen[r]]
        x[1, r] = rows[second, chosen[r]] if second >= 0 else np.float32(0.0)
        x[2, r] = np.float32(1.0)


@kernel
def _adam(values, gradient, mean, square, step, rate):  # type: ignore[no-untyped-def]
    """One step of Adam (Kingma and Ba 2015); the gradient becomes 0."""
    a, b = np.float32(FORGET), np.float32(FORGET_SQUARES)
    length, root = np.float32(rate / (1.0 - FORGET**step)), np.float32((1.0 - FORGET_SQUARES**step) ** -0.5)
    one, little = np.float32(1.0), np.float32(LITTLE)
    for i in range(len(values)):
        g = gradient[i]
        mean[i] = a * mean[i] + (one - a) * g
        square[i] = b * square[i] + (one - b) * g * g
        values[i] -= length * mean[i] / (np.sqrt(square[i]) * root + little)
        gradient[i] = np.float32(0.0)


@kernel
def _one_batch(  # type: ignore[no-untyped-def]
    rows,
    target,
    batch,
    firsts,
    seconds,
    widths,
    steep,
    weights,
    bias,
    gradient,
    cuts,
    penalty,
    lanes,
    held,
    outputs,
    room,
):
    """Gradients of the loss of some rows, in blocks; the bias's own is returned."""
    n_nets, size = len(firsts), len(batch)
    by_bias = np.float32(0.0)
    share, pull = np.float32(1.0 / size), np.float32(2.0 * penalty / (size * n_nets))
    factor, floor = np.float32(256.0 / (256.0 - cuts[1])), np.uint8(cuts[1])
    bits = lanes.view(np.uint8)
    for start in range(0, size, len(lanes)):
        chosen = batch[start : start + len(lanes)]
        m = len(chosen)
        x = room[2, : 3 * m].reshape(3, m)
        linear, kept, out = np.full(m, bias[0]), outputs[1], outputs[0]
        for net in range(n_nets):
            _take(rows, chosen, firsts[net], seconds[net], x)
            _forward(weights[net], widths, steep, seconds[net] >= 0, x, held[net], cuts[0], lanes, out[net, :m])
            _draw(lanes)
            for r in range(m):
                kept[net, r] = factor if bits[r] >= floor else np.float32(0.0)
                linear[r] += out[net, r] * kept[net, r]
        for r in range(m):
            linear[r] = (np.float32(1.0) / (np.float32(1.0) + np.exp(-linear[r])) - target[chosen[r]]) * share
            by_bias += linear[r]
        for net in range(n_nets):
            _take(rows, chosen, firsts[net], seconds[net], x)
            for r in range(m):
                out[net, r] = linear[r] * kept[net, r] + pull * out[net, r]
            _backward(
                weights[net], widths, steep, seconds[net] >= 0, x, held[net], cuts[0], out[net, :m], room, gradient[net]
            )
    return by_bias


@kernel
def _log_loss(  # type: ignore[no-untyped-def]
    rows, target, watched, firsts, seconds, widths, steep, weights, bias, lanes, held, outputs, room
):
    """Mean loss of some rows, nothing dropped."""
    total = 0.0
    for start in range(0, len(watched), len(lanes)):
        chosen = watched[start : start + len(lanes)]
        m = len(chosen)
        x, out = room[2, : 3 * m].reshape(3, m), outputs[0, 0, :m]
        linear = np.full(m, bias[0])
        for net in range(len(firsts)):
            _take(rows, chosen, firsts[net], seconds[net], x)
            _forward(weights[net], widths, steep, seconds[net] >= 0, x, held[net], 0, lanes, out)
            linear += out
        for r in range(m):
            z = linear[r]
            total += max(z, np.float32(0.0)) + np.log1p(np.exp(-abs(z))) - z * target[chosen[r]]
    return total / len(watched)


@kernel
def train(  # type: ignore[no-untyped-def]
    rows, target, kept, watched, firsts, seconds, widths, steep, weights, bias, cuts, penalty, rate, batch, epochs,
    patience, seed, width,
):  # fmt: skip
    """Train one learner; its weights and bias become those of the epoch of least loss on the watched rows.

    Parameters
    ----------
    rows : (features, N) float32, standardised
    target : (N,) float32, 0 and 1
    kept, watched : numbers of the rows to learn from, and of those that decide which epoch is kept
    firsts, seconds : (networks,) features of each network, the second -1 for a network of one
    widths : of the hidden layers
    steep : whether the first layer is of ExU units
    weights, bias : (networks, numbers) and (1,) float32, to begin from
    cuts : of 256, how many units and how many components are dropped in a step
    penalty : on the mean square of the outputs
    rate, batch, epochs, patience : of Adam, and of the end
    seed : of the order of rows and of what is dropped
    width : rows of a block, :func:`rows_at_once`
    """
    np.random.seed(seed)  # noqa: NPY002 - compiled, it is this thread's own
    lanes = np.empty(width, np.uint32)
    for i in range(width):
        lanes[i] = np.uint32(1 + np.random.randint(0, 2**31 - 1))  # noqa: NPY002
    n_nets, size = weights.shape
    units = widths.sum() + len(widths)
    held = np.empty((n_nets, units * width), np.float32)
    outputs = np.empty((2, n_nets, width), np.float32)
    room = np.empty((3, (max(widths.max(), 2) + 1) * width), np.float32)
    gradient, mean, square = (
        np.zeros((n_nets, size), np.float32),
        np.zeros(n_nets * size, np.float32),
        np.zeros(n_nets * size, np.float32),
    )
    bias_gradient, bias_mean, bias_square = np.zeros(1, np.float32), np.zeros(1, np.float32), np.zeros(1, np.float32)
    best, best_bias, least, since, step = weights.copy(), bias.copy(), np.inf, 0, 0
    order = kept.copy()
    for _epoch in range(epochs):
        np.random.shuffle(order)  # noqa: NPY002
        for start in range(0, len(order), batch):
            step += 1
            bias_gradient[0] = _one_batch(
                rows, target, order[start : start + batch], firsts, seconds, widths, steep, weights, bias, gradient,
                cuts, penalty, lanes, held, outputs, room,
            )  # fmt: skip
            _adam(weights.ravel(), gradient.ravel(), mean, square, step, rate)
            _adam(bias, bias_gradient, bias_mean, bias_square, step, rate)
        loss = _log_loss(
            rows, target, watched, firsts, seconds, widths, steep, weights, bias, lanes, held, outputs, room
        )
        since += 1
        if loss < least:
            least, since = loss, 0
            best[:], best_bias[:] = weights, bias
        if since >= patience:
            break
    weights[:], bias[:] = best, best_bias


@kernel
def components_of_learners(rows, firsts, seconds, widths, steep, weights, width, out):  # type: ignore[no-untyped-def]
    """Add every learner's outputs to ``out``, (networks, N) float64; ``weights`` is (learners, networks, numbers)."""
    lanes, everyone = np.zeros(width, np.uint32), np.arange(rows.shape[1])
    held = np.empty((widths.sum() + len(widths)) * width, np.float32)
    for start in range(0, len(everyone), width):
        chosen = everyone[start : start + width]
        m = len(chosen)
        x, found = np.empty((3, m), np.float32), np.empty(m, np.float32)
        for net in range(len(firsts)):
            _take(rows, chosen, firsts[net], seconds[net], x)
            for learner in range(len(weights)):
                _forward(weights[learner, net], widths, steep, seconds[net] >= 0, x, held, 0, lanes, found)
                for r in range(m):
                    out[net, start + r] += found[r]
