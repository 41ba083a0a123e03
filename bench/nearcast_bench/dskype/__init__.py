"""The experiments of section 8.2 of Skype: DSkype's distributions side by side."""
