"""The weekly capacity review: one plain data model of a week, findings with evidence, and the page that tells them.

`calendar` names the week, `gather` fills it from a history (`logs` makes one of raw logs), `hours` is a pool's work by
the hour, `change` finds what changed and splits it, `facts` holds every quantity once, `sections` is a shelf of one
topic each, `diagnosis` goes from symptoms to a cause and its remedies, `document` and `markdown` tell it.
"""
