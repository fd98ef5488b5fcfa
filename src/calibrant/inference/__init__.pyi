# Written by docs/make_stubs.py from src/calibrant/public_names.py.
from calibrant.censoring import Censored as Censored
from calibrant.inference.classic_tests import hosmer_lemeshow as hosmer_lemeshow
from calibrant.inference.classic_tests import spiegelhalter as spiegelhalter
from calibrant.inference.compare_outcomes import OutcomeComparison as OutcomeComparison
from calibrant.inference.comparison import Difference as Difference
from calibrant.inference.planning import detectable_distance as detectable_distance
