"""The language of schemas, the rules that judge them, and the tables of what operators really do."""
