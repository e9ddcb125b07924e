"""Where do rows lie, and who runs the work? Delta tables, their schemas and lock, the Spark session, keys of hashes, upkeep."""
