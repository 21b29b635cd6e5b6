from django.db import models


class SigninLink(models.Model):
    """A link not used yet: using it deletes the row. Of its token only the SHA-256 is kept."""

    token_hash = models.CharField(primary_key=True, max_length=64)
    expires_at = models.BigIntegerField()  # milliseconds UTC

    class Meta:
        db_table = "signin_links"

    def __str__(self) -> str:
        return f"until {self.expires_at}"
