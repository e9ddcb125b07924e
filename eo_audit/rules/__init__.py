"""Which promise was broken? Rules read histories and find cases."""
