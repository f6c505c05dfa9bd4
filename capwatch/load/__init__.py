"""The load of each pool over the last minutes: what came, what it costs, how long it stays, who works on it.

Tables that several meters read, and what can be said from them; every window is one of event time.
"""
