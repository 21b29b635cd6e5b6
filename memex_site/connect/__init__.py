"""What connects an agent to Memex: its settings edited, shown, and put back as they were."""
