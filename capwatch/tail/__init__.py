"""tail: log files become blocks of whole lines, each byte once, over rotation, truncation and restart."""
