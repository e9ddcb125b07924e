"""Which promise was broken? Rules read histories and find cases.

A rule is one page in the folder of its family (`rules.rule`); `catalogue` lists the pages. How rows become cases: `cases`, with `sources`,
`subjects` and `needs`. What the words of a case may ask: `context`.
"""
