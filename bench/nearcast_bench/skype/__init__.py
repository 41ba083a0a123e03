"""Experiments of Skype and DSkype."""
