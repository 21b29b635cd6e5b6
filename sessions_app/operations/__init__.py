"""What agents and people can ask for, as JSON: one function each, whatever door it is asked through.

Each takes an Access, so that nothing can be read or changed that it doesn't cover. Names are those of the
wire: camelCase.
"""
