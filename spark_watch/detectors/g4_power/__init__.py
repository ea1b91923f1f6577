"""G4: throttling, stuck low power, heat, spontaneous reboot."""
