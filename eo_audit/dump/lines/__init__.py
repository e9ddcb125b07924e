"""What does one line say? The grammar of each release as data, and what every reader shares: decoders of printed keys and values, hashes,
the columns of the facts.
"""
