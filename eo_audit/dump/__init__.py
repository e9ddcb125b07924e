"""What does the text say? Dump files become facts; nothing is judged here.

`ranges` cuts a file, `parse` gives the facts of a range, and `reader` chooses who reads it: `log`, `fast` or `flat`.
"""
