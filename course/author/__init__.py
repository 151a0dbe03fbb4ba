"""What makes and measures the course: notebooks from their sources, graders by mutants, plans for instructors."""
