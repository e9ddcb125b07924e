"""Step 2: facts to histories. Which history is made from which, in order."""
