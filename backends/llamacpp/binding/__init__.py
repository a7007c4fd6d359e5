"""llama_cpp pointers as Python objects. Only these files touch them, and the one that makes samplers."""
