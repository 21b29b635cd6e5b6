class EditRefused(ValueError):
    """A settings file is not what can be edited safely; nothing was changed. The message says where and why."""
