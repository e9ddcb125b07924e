"""Step 1: dump text to facts. Which files are new, in which ranges they are read, and when their facts may be committed."""
