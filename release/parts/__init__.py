"""What a release consists of: Python packages, the plugin, images and the chart, each the same bytes each time."""
