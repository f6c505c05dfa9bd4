"""Privacy: secrets and prompts planted wherever a text is read, and looked for wherever anything is shown or kept."""
