"""DSH: it has no settings in which a program may put hooks, so a person pastes what asks Memex. Pure."""

from .plan import Installation

AGENT = "dsh"
BY_HAND = (
    "DSH has no settings that Memex could edit: what asks Memex is put by hand into a plugin of DSH, or into "
    "the program that drives it. Undoing takes back the token alone; remove by hand what you pasted."
)


def snippet(installation: Installation) -> str:
    """What has to be asked before each step, as a command to try."""
    return (
        f"curl -s {installation.url('/api/session.prestep')} \\\n"
        f'  -H "Authorization: Bearer $(cat {installation.home}/agents/{AGENT}.token)" \\\n'
        "  -H 'Content-Type: application/json' \\\n"
        """  -d '{"sessionId": "ID OF THE SESSION", "text": "WHAT THE PERSON TYPED"}'"""
    )
