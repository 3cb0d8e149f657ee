"""What both adapters decide alike; imports no framework."""
