"""What a comparison holds, and how it is told: text, Markdown, HTML, CSV, LaTeX and JSON."""
