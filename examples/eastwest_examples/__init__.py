"""Extensions of EastWest: one file each, installed as any package."""
