"""The papers, reproduced: one file per table or figure, ours beside the paper's; `make reproduce`."""
