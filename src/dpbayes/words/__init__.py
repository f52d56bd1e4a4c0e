"""Every sentence once: what all faces say of guarantees, limits, tables, units and cautions."""
