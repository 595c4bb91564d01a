"""What torch.compile and graph replay make of each operator: is the call still there, and is the result right?

`programs` builds the shapes of program that go wrong, `graphs` looks at what torch made of them, `replay` captures on a
device that has graphs, `trial` puts one operator through all of it, `run` does so in a fresh process for each.
"""
