"""Every measure is a scikit-learn scorer, with text labels and routed weights."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import config_context
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV

import calibrant as cb

RNG = np.random.default_rng(11)
X = RNG.normal(size=(240, 3))
Y = np.where(RNG.random(240) < 1 / (1 + np.exp(-X[:, 0])), "sick", "well")
W = RNG.integers(1, 4, 240).astype(float)


@pytest.mark.filterwarnings("ignore::calibrant.LevelSetWarning")
@pytest.mark.parametrize("name", list(cb.measures()))
def test_a_measure_scores_a_grid_search(name):
    row = cb.measures()[name]
    options = {**row.options, **row.law_options}
    with config_context(enable_metadata_routing=True):
        scorer = make_scorer(
            row.function,
            greater_is_better=False,
            response_method="predict_proba",
            pos_label="sick",
            **options,
        ).set_score_request(sample_weight=True)
        model = LogisticRegression().set_fit_request(sample_weight=True)
        folds = [(np.arange(120), np.arange(120, 240)), (np.arange(120, 240), np.arange(120))]
        search = GridSearchCV(model, {"C": [0.01, 1.0]}, scoring=scorer, cv=folds)
        search.fit(X, Y, sample_weight=W)
    found = search.cv_results_["split0_test_score"][1]
    fitted = LogisticRegression(C=1.0).fit(X[:120], Y[:120], sample_weight=W[:120])
    p = fitted.predict_proba(X[120:])[:, 0]  # "sick" sorts before "well"
    expected = row.function((Y[120:] == "sick").astype(int), p, sample_weight=W[120:], **options)
    assert found == pytest.approx(-expected, abs=1e-12)
