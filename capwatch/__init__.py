"""capwatch: capacity observability for LLM serving.

The map of the house, in the direction the data flows:

**tail** bytes → **formats** turn lines into **records**, gathered in **batches** → **meters** watch the batches
→ the **ledger** adds what they saw to the totals → **keep** commits totals and file positions in one transaction
→ **exporters** and **web** show the committed snapshot. **capacity** is the arithmetic that everyone shares.
"""

__version__ = "0.1.0"
