"""Tests over one live server. A package of its own, so that a fixture can live as long as its modules do."""
