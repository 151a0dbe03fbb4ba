"""Jobs as commands: any job on any driver (`sluice run`), and the one that shows itself (`sluice demo`)."""
