"""One thing changed at every place of a real dump: what no rule sees is looked at by hand."""
