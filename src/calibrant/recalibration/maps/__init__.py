"""Fitted maps: values that predict, can be stored as JSON, and can be written as SQL. One form per file."""
