"""IPT: the individual pruning of Skype alone (section 8.1.2, figure 12)."""
