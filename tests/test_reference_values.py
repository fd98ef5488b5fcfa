"""Real forecasts: our numbers against those of other programs on the same files."""

from __future__ import annotations

import csv

import numpy as np
import pandas as pd
import pytest

import calibrant as cb


def load(folder, case):
    """Return outcome and prediction of a case of reference_values.csv; rows with y not 0/1 dropped."""
    if case.startswith("538_games_"):
        frame = pd.read_parquet(folder / "fivethirtyeight_games.parquet")
        frame = frame[frame.league == case.removeprefix("538_games_")].rename(columns={"y": "y"})
        column, outcome = "p", "y"
    elif case.startswith("adult_"):
        frame, column, outcome = (
            pd.read_parquet(folder / "adult_predictions.parquet"),
            case.removeprefix("adult_"),
            "y",
        )
    elif case.startswith("niamey_"):
        frame, column, outcome = (
            pd.read_csv(folder / "weather_niamey_2016.csv"),
            case.removeprefix("niamey_"),
            "obs",
        )
    elif case.startswith("solarflare_C1_"):
        frame, column = (
            pd.read_parquet(folder / "solar_flares_c1.parquet"),
            case.removeprefix("solarflare_C1_"),
        )
        outcome = "rlz.C1"
    elif case.startswith("support2_"):
        column = case.removeprefix("support2_")
        frame, outcome = (
            pd.read_parquet(folder / "support2_survival.parquet"),
            column.replace("surv", "alive"),
        )
    else:
        name = {"toplabel_resnet110_c100": "toplabel_resnet110_cifar100"}.get(case, case)
        frame, column, outcome = pd.read_parquet(folder / f"{name}.parquet"), "confidence", "correct"
    frame = frame[[outcome, column]].dropna()
    frame = frame[frame[outcome].isin([0, 1])]
    return frame[outcome].to_numpy(float), frame[column].to_numpy(float)


def test_agreement_with_other_programs(shared_data):
    checked = 0
    with open(shared_data / "reference_values.csv") as lines:
        for row in csv.DictReader(lines):
            y, p = load(shared_data, row["case"])
            f = cb.Forecasts(y, p)
            assert f.n == int(row["n"]), row["case"]
            assert f.levels == int(row["n_unique_p"])
            split = cb.decompose(f)
            assert split.score == pytest.approx(float(row["model_diagnostics.brier_score"]), abs=1e-10)
            assert split.miscalibration == pytest.approx(
                float(row["model_diagnostics.brier_miscalibration"]), abs=1e-9
            )
            assert split.discrimination == pytest.approx(
                float(row["model_diagnostics.brier_discrimination"]), abs=1e-9
            )
            if f.levels == f.n:
                assert cb.kuiper_error(f) == pytest.approx(float(row["mcgrad.ecce"]), abs=1e-6)
            if row["smooth_by_linear_program"]:
                expected = float(row["smooth_by_linear_program"])
                assert cb.smooth_calibration_error(f) == pytest.approx(expected, abs=1e-8)
            checked += 1
    assert checked >= 15


def test_published_corp_decomposition_of_the_niamey_forecasts(shared_data):
    """Dimitriadis, Gneiting & Jordan (2021): MCB .017 .018 .066 .022, UNC .244."""
    frame = pd.read_csv(shared_data / "weather_niamey_2016.csv")
    printed = {"Logistic": 0.017, "EMOS": 0.018, "ENS": 0.066, "EPC": 0.022}
    for name, miscalibration in printed.items():
        split = cb.decompose(frame.obs, frame[name])
        assert split.miscalibration == pytest.approx(miscalibration, abs=5e-4)
        assert split.uncertainty == pytest.approx(0.244, abs=5e-4)


def test_published_binned_error_of_a_network(shared_data):
    frame = pd.read_parquet(shared_data / "toplabel_resnet110_cifar100.parquet")
    assert cb.binned_calibration_error(frame.correct, frame.confidence) == pytest.approx(
        0.184804543945, abs=1e-6
    )


def test_survey_weights_change_the_answer(shared_data):
    frame = pd.read_parquet(shared_data / "nhanes2_weighted_predictions.parquet")
    column = next(name for name in frame.columns if name.startswith("p_") and name != "p_lr")
    plain = cb.kuiper_error(frame.y, frame[column])
    weighted = cb.kuiper_error(frame.y, frame[column], sample_weight=frame.weight)
    assert np.isfinite(weighted)
    assert weighted != plain
