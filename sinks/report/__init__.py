"""Reports as text: Markdown, HTML, JSON and the terminal."""
