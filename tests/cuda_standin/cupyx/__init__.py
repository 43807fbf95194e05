"""What of ``cupyx`` the plugin asks for."""
