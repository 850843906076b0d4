"""Terraform's plans as a review reads them: changes, gaps, secrets, and the normal form that is accepted."""
