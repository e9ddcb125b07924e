"""What does Kafka promise? The law in plain Python: no pyspark, nothing of ours."""
