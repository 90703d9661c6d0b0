"""The budget as an axis: what a ladder of budgets measured, and what it lets one say about larger ones."""
