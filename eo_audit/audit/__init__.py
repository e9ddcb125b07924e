"""Step 3: histories to findings and a verdict. Rules find, the policy judges, what a team accepted fails nothing."""
