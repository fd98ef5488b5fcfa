"""The papers, reproduced: one file per table or figure, ours next to those of the paper; `make reproduce`."""
