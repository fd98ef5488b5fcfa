# Written by docs/make_stubs.py from src/calibrant/public_names.py.
from calibrant.recalibration.assess import Assessment as Assessment
from calibrant.recalibration.methods.table import recalibrations as recalibrations
from calibrant.recalibration.result import RecalibrationWarning as RecalibrationWarning
