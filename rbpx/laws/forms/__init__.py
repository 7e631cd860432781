"""Sizes and a quantity in; what the forms that its law may have say together out."""
