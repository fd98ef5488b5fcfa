"""The papers that rows of the registry cite, each written once."""

DISTANCE_PAPER = "Błasiok, Gopalan, Hu & Nakkiran 2023, A unifying theory of distance from calibration"
TRUTHFUL_PAPER = "Hartline, Hu & Wu 2025, A perfectly truthful calibration measure"
MULTI_PAPER = "Guy, Haimovich, Linder, Okati, Perini, Tax & Tygert 2025, Measuring multi-calibration"
SURVEY = "Gopalan & Hu 2025, Calibration through the lens of indistinguishability"
BINS_PAPER = "Naeini, Cooper & Hauskrecht 2015, Well calibrated probabilities using Bayesian binning"
CURVE_PAPER = "Arrieta-Ibarra, Gujral, Tannen, Tygert & Xu 2022, Metrics of calibration"
CORP_PAPER = "Dimitriadis, Gneiting & Jordan 2021, Stable reliability diagrams for probabilistic classifiers"
INDEX_PAPER = "Austin & Steyerberg 2019, The integrated calibration index (isotonic in place of loess)"
COX_PAPER = "Cox 1958, Two further applications of a model for binary regression"
SPIEGELHALTER_PAPER = "Spiegelhalter 1986, Probabilistic prediction in patient management and clinical trials"
HOSMER_PAPER = "Hosmer & Lemeshow 1980, Goodness of fit tests for the multiple logistic regression model"
BENEFIT_PAPER = "Vickers & Elkin 2006, Decision curve analysis"

BESIDE_MEASURES = {  # what papers report too: tests, and the curve of net benefit
    "omnibus": f"{COX_PAPER}; {MULTI_PAPER}, eq. (2)",
    "spiegelhalter": SPIEGELHALTER_PAPER,
    "hosmer-lemeshow": HOSMER_PAPER,
    "net-benefit": BENEFIT_PAPER,
}
