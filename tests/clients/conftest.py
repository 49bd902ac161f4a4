"""The application over a home with the table orders."""

from tests.serve.conftest import app, orders

__all__ = ["app", "orders"]
