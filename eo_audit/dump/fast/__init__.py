"""The same in stretches, as columns (numpy): thirteen times as fast on text that is beyond doubt, and held equal to the careful reader."""
