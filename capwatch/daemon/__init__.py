"""The daemon: three works that never wait for each other.

**Reading** follows the logs and gathers what they tell. **Committing** makes it durable and then shows it.
**Scraping** (`capwatch.web`) shows the last durable snapshot, and only that.
"""
