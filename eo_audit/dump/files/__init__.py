"""Which files are dumps, and of what? What lies in a folder, whose partition it is, and what the files beside a log say."""
