"""The golden set: questions read, checked, written, told apart. No clock, network, database."""
