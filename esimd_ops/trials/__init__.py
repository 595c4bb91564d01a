"""What every trial of an operator shares: the child process that may die, its messages, memory, judgement."""
