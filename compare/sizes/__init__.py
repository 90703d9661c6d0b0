"""The answer at other sizes of the model: shapes, experiments, plans, the ranking and its words."""
