"""What the graphics compiler makes of each kernel: device images -> facts of their machine code, judged."""
