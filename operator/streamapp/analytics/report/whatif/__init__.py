"""What other settings would have given: arithmetic over what was seen, which predicts nothing and decides nothing."""
