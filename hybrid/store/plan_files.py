"""The names of the files of a table's plans, in the home's folder and on the store."""

PLANS_FOLDER = "plans"
# A plan exists once its document does, and so does a push.
PLAN_FILE, REPLACEMENT_FILE, PUSH_FILE = "plan.json", "replacement.json", "push.json"
DOCUMENTS = (PLAN_FILE, REPLACEMENT_FILE, PUSH_FILE)
# The state of a backfill, and of a replacement; without one it is new.
WANTED_FILE, CLOSED_FILE = "wanted.json", "closed.json"
ROWS, CLAIMS, PUSHES, PUSH_KEY = "rows", "claims", "pushes", "push.key"
