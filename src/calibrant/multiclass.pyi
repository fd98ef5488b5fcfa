# Written by docs/make_stubs.py from src/calibrant/public_names.py.
from calibrant.inference.class_table import ClassTable as ClassTable
from calibrant.inference.class_table import class_table as class_table
from calibrant.metrics.multiclass import class_low_degree_error as class_low_degree_error
from calibrant.metrics.multiclass import class_wise as class_wise
from calibrant.metrics.multiclass import one_vs_rest as one_vs_rest
from calibrant.metrics.multiclass import top_label as top_label
