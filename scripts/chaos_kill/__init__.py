"""What scripts/chaos kill does, and how it judges what came of it."""
