"""Report -> strings: text, JSON, SARIF, HTML; and the console that commands write them to."""
