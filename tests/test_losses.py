"""The PyTorch loss equals the exact measure, and its gradient equals finite differences."""

from __future__ import annotations

import numpy as np
import pytest

import calibrant as cb
from calibrant.losses import kernel_calibration_loss

torch = pytest.importorskip("torch")


def batch(n=40, seed=0, ties=False):
    rng = np.random.default_rng(seed)
    p = rng.random(n).round(1) if ties else rng.random(n)
    return torch.tensor(rng.integers(0, 2, n)), torch.tensor(p), torch.tensor(rng.random(n) + 0.1)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("bandwidth", [1e-5, 0.1, 1.0, 50.0])
def test_equals_the_exact_measure(ties, bandwidth):
    y, p, w = batch(200, ties=ties)
    found = kernel_calibration_loss(y, p, sample_weight=w, bandwidth=bandwidth)
    f = cb.Forecasts(y.numpy(), p.numpy(), sample_weight=w.numpy())
    expected = cb.kernel_calibration_error(f, bandwidth=bandwidth, squared=True)
    assert found.item() == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("bandwidth", [0.05, 1.0])
def test_gradients_in_predictions_outcomes_and_weights(bandwidth):
    y, p, w = batch()
    arguments = [t.double().requires_grad_() for t in (y, p, w)]
    assert torch.autograd.gradcheck(
        lambda y, p, w: kernel_calibration_loss(y, p, sample_weight=w, bandwidth=bandwidth), arguments
    )


def test_at_ties_the_gradient_is_the_mean_of_its_two_sides():
    y, p, _ = batch(12, ties=True)
    p.requires_grad_()
    kernel_calibration_loss(y, p).backward()
    for i in range(len(p)):
        step = torch.zeros_like(p)
        step[i] = 1e-6
        with torch.no_grad():
            across = kernel_calibration_loss(y, p + step) - kernel_calibration_loss(y, p - step)
        assert float(p.grad[i]) == pytest.approx(float(across) / 2e-6, abs=1e-6)


def test_training_repairs_a_shifted_model():
    rng = np.random.default_rng(1)
    logit = torch.tensor(rng.normal(0, 2, 4_000))
    y = torch.tensor(rng.random(4_000)) < torch.sigmoid(logit)
    shift, slope = torch.tensor(1.0, requires_grad=True), torch.tensor(2.0, requires_grad=True)
    optimiser = torch.optim.Adam([shift, slope], lr=0.05)
    for _ in range(200):
        optimiser.zero_grad()
        loss = kernel_calibration_loss(y, torch.sigmoid(slope * logit + shift), bandwidth=0.2)
        loss.backward()
        optimiser.step()
    assert shift.item() == pytest.approx(0.0, abs=0.15)
    assert slope.item() == pytest.approx(1.0, abs=0.2)


def test_single_precision_and_one_record():
    one = kernel_calibration_loss(torch.tensor([1.0]), torch.tensor([0.25]))
    assert one.dtype == torch.float32
    assert float(one) == 0.5625


def test_bad_input_is_refused():
    with pytest.raises(cb.CalibrantError, match="one length"):
        kernel_calibration_loss(torch.ones(3), torch.ones(2))
    with pytest.raises(cb.CalibrantError, match="bandwidth"):
        kernel_calibration_loss(torch.ones(2), torch.ones(2), bandwidth=0.0)
