"""What happened, in order? Facts become histories; labels, no judgement."""
