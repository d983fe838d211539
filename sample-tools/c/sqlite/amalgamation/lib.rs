//! Holds nothing: this package only names another one.
