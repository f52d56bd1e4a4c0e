"""The command line: what it offers. A command is loaded when it is called, and this table imports nothing."""

PANELS = {
    "Publish": ("example", "schema", "ledger", "plan", "release", "ask", "verify", "studio"),
    "Models and records": ("model", "predict", "synth"),
    "Hand over": ("export", "keys", "sign"),
    "Research": ("price", "calibrate", "risk", "papers"),
    "This computer": ("doctor",),
}
"""The first words, as help shows them."""

GROUPS = {
    "schema": "Write, check and extend what is public about a table.",
    "ledger": "Limits, what was spent, and the proof of it.",
}
"""What commands of two words share."""

COMMANDS = {
    "example": ("start", "Write a made-up survey of 20,000 people, its schema, and the other files of the manual."),
    "schema init": ("schema", "Write a schema from column names and declarations; reads no rows."),
    "schema check": ("schema", "Show a schema; check that the table's columns fit."),
    "schema adopt": ("schema", "Write released categories or edges into a schema file."),
    "ledger init": ("ledger", "Give a data set a limit."),
    "ledger show": ("ledger", "Limit, spent, left, and every release; all hashes are checked."),
    "ledger limit": ("ledger", "Change the limit of a data set: the owner's decision, kept in the ledger."),
    "ledger accept": ("ledger", "Let releases use a changed schema: the owner's decision, kept in the ledger."),
    "ledger charge": ("ledger", "Charge releases that are drawn elsewhere or later, as one series."),
    "ledger finish": ("ledger", "Complete releases that were interrupted after their charge; charges nothing more."),
    "plan": ("release", "Say what a release would cost and how exact it would be; reads no rows."),
    "release": ("release", "Publish tables, a posterior, a model or records of a private table."),
    "ask": ("ask", "Answer questions from everything published; nothing is charged."),
    "verify": ("published", "Check releases, ledgers or exported ledgers from what is public."),
    "studio": ("studio", "Do all of this in the browser, on this machine. Stop with Ctrl-C."),
    "model": ("models", "Show a fitted model, or build one from published tables; nothing is charged."),
    "predict": ("models", "Predict the class of every record of a file; nothing is charged."),
    "synth": ("models", "Draw synthetic records from what is published; nothing is charged."),
    "export": ("published", "Write a release for its readers, or a ledger as lines of JSON."),
    "keys": ("published", "Make a key pair for signatures. Keep the .key file secret; publish the .pub file."),
    "sign": ("published", "Sign a release and, through its hashes, the files beside it. Works offline."),
    "price": ("experts", "Price releases in every notion of privacy."),
    "calibrate": ("experts", "Find parameters and the expected error that meet a guarantee; all mechanisms, ranked."),
    "risk": ("experts", "Say what a guarantee means: how often any attacker can be right about one person."),
    "papers": ("papers", "List and run what the papers behind dpbayes state."),
    "doctor": ("start", "Check the installation: libraries, entropy, noise samplers, and an exact number."),
}
"""Each command: the module of this package whose function of that name it is, and what it does."""

ABOUT = "Publish what a sensitive table of categories says, without exposing anyone in it."
