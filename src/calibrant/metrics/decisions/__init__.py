"""What miscalibration costs those who act on the predictions."""
