"""The same for releases before 2.2, which print records without batch lines."""
