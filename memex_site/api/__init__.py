"""The JSON API under /api/, and the hooks of agents under /hooks/."""
