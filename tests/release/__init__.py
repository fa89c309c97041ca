"""What is published: wheel, model cards, results, container."""
