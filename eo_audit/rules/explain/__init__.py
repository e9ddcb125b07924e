"""What a rule says of a case: one function per rule, in plain Python, from the most telling rows to words and numbers."""
