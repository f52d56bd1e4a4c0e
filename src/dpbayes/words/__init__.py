"""Every sentence once: what all faces say of promises, budgets, tables, units and cautions."""
