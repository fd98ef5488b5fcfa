# Written by docs/make_stubs.py from src/calibrant/public_names.py.
from calibrant import decisions as decisions
from calibrant import distributions as distributions
from calibrant import errors as errors
from calibrant import groups as groups
from calibrant import inference as inference
from calibrant import logs as logs
from calibrant import metrics as metrics
from calibrant import multiclass as multiclass
from calibrant import online as online
from calibrant import recalibration as recalibration
from calibrant import sklearn as sklearn
from calibrant import truthfulness as truthfulness
from calibrant.abstention import choose_threshold as choose_threshold
from calibrant.abstention import risk_coverage as risk_coverage
from calibrant.censoring import censored as censored
from calibrant.decisions import *
from calibrant.demo import load_demo as load_demo
from calibrant.errors import CalibrantError as CalibrantError
from calibrant.errors import InvalidInputError as InvalidInputError
from calibrant.errors import LevelSetWarning as LevelSetWarning
from calibrant.errors import MissingDependencyError as MissingDependencyError
from calibrant.errors import SwappedArgumentsWarning as SwappedArgumentsWarning
from calibrant.errors import TooFewRecordsError as TooFewRecordsError
from calibrant.errors import UnknownNameError as UnknownNameError
from calibrant.errors import UnreadableFileError as UnreadableFileError
from calibrant.evaluation.evaluate import Evaluation as Evaluation
from calibrant.evaluation.evaluate import evaluate as evaluate
from calibrant.evaluation.gate import assert_calibrated as assert_calibrated
from calibrant.evaluation.verify import Verification as Verification
from calibrant.evaluation.verify import verify as verify
from calibrant.forecasts import Forecasts as Forecasts
from calibrant.groups import *
from calibrant.groups.audit import AuditTable as AuditTable
from calibrant.groups.audit import audit as audit
from calibrant.groups.audit import audit_table as audit_table
from calibrant.groups.audit_result import Audit as Audit
from calibrant.groups.compare_groups import compare_groups as compare_groups
from calibrant.groups.compare_groups_result import GroupComparison as GroupComparison
from calibrant.inference import *
from calibrant.inference.compare import compare as compare
from calibrant.inference.compare_result import Comparison as Comparison
from calibrant.inference.intervals import ConfidenceInterval as ConfidenceInterval
from calibrant.inference.intervals import confidence_interval as confidence_interval
from calibrant.inference.planning import Plan as Plan
from calibrant.inference.planning import required_samples as required_samples
from calibrant.inference.testing import TestResult as TestResult
from calibrant.inference.testing import calibration_test as calibration_test
from calibrant.inference.tolerance import ToleranceResult as ToleranceResult
from calibrant.inference.tolerance import tolerance_test as tolerance_test
from calibrant.metrics import *
from calibrant.metrics.certificates import NoCertificateError as NoCertificateError
from calibrant.metrics.lookup import measure as measure
from calibrant.metrics.lookup import measures as measures
from calibrant.multiclass import *
from calibrant.online.monitor import GroupMonitor as GroupMonitor
from calibrant.online.monitor import Monitor as Monitor
from calibrant.online.monitor import Reading as Reading
from calibrant.recalibration import *
from calibrant.recalibration.recalibrate import load_recalibration as load_recalibration
from calibrant.recalibration.recalibrate import recalibrate as recalibrate
from calibrant.recalibration.result import Recalibration as Recalibration
from calibrant.report.diagram import reliability_diagram as reliability_diagram
from calibrant.results import Measurement as Measurement
from calibrant.sketch.sketch import Sketch as Sketch
from calibrant.truthfulness import *

__version__: str
