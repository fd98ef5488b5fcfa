# Written by docs/make_stubs.py from src/calibrant/public_names.py.
from calibrant.distributions.tables import IntervalCoverage as IntervalCoverage
from calibrant.distributions.tables import QuantileTable as QuantileTable
from calibrant.distributions.tables import interval_coverage as interval_coverage
from calibrant.distributions.tables import quantile_table as quantile_table
from calibrant.distributions.thresholds import HorizonTable as HorizonTable
from calibrant.distributions.thresholds import ThresholdTable as ThresholdTable
from calibrant.distributions.thresholds import horizon_table as horizon_table
from calibrant.distributions.thresholds import threshold_forecasts as threshold_forecasts
from calibrant.distributions.thresholds import threshold_table as threshold_table
from calibrant.distributions.uniformity import Pit as Pit
from calibrant.distributions.uniformity import pit as pit
from calibrant.evaluation.distributions import DistributionEvaluation as DistributionEvaluation
from calibrant.evaluation.distributions import evaluate_distributions as evaluate_distributions

evaluate = evaluate_distributions
