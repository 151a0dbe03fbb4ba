"""The site's `lite/`: JupyterLab itself in a browser, with some of the notebooks."""
