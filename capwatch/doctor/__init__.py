"""Whether what is shipped finds its series on a server, and which known mistakes of capacity that server shows.

`seen` asks the server, `series` explains what is missing, `loaded` looks at rules and targets, `mistakes` and
`settings` at capacity itself. A check is a function that yields findings; nothing here changes anything.
"""
