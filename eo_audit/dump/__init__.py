"""What does the text say? Dump files become facts; nothing is judged here."""
