"""The tests; a package, so that one of that name that another distribution installs never stands in for them."""
