"""LogInfer."""
