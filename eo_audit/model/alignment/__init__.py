"""Which marker ended which transaction: the markers of one producer in one log, beside its decided transactions that list the partition.

Order is evidence, time is a hint. `TransactionMarkerChannelManager` sends the markers of a transaction before the id's next one can begin,
so both sequences run in the same order; where every type fits, nothing else is asked. What does not fit has a price: a transaction
without its marker, a marker of the other type, a marker that nobody sent. The cheapest story is believed, unless another one costs nearly
as little.

Clocks only weigh stories against each other. A marker has the clock of the partition's leader, a decision that of the coordinator's; the
two may lie any distance apart, but the distance does not jump: a marker that follows its decision at another distance than the one before
it did tells of a clock that was set, or of a wrong pair. Other producers of the same log have seen the same clock, and are asked which of
the two it was.

Read in this order: `producer` and `clocks` (what lies side by side, and how far two clocks are apart), `story` (one way to tell the
markers), `prices` (how odd each step of one is) and `pairs` (a marker beside each transaction: what all stories share), `stories` (how a
story goes on), `teller` (all stories of one producer, the cheapest first; `limits` keeps them few), `beside` (a story beside another
producer's), `hearing` (all producers of a log hear each other) and `align`, which says what is certain of it and is what others call.
"""
