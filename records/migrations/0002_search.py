from typing import ClassVar

import django.db.models.deletion
from django.db import migrations, models

# Terms come extracted: only blanks separate them.
CARDS = """
    CREATE VIRTUAL TABLE search_cards USING fts5(
        title, tags, summary, use_when, abstract,
        tokenize = "unicode61 remove_diacritics 0 tokenchars '_+#'"
    )
"""
# Records of an earlier version get into both indexes with the first run of whatever brings them up to date.
ENTRIES = """
    INSERT INTO search_entries (record_id, workspace_key, scope, session_id, version, pending)
    SELECT id, workspace_key, scope, session_id, 1, 1 FROM records
"""


class Migration(migrations.Migration):
    dependencies: ClassVar = [("records", "0001_initial")]

    operations: ClassVar = [
        migrations.CreateModel(
            name="SearchEntry",
            fields=[
                ("number", models.BigAutoField(primary_key=True, serialize=False)),
                ("workspace_key", models.CharField(max_length=100)),
                ("scope", models.CharField(max_length=16)),
                ("session_id", models.CharField(blank=True, max_length=200)),
                ("version", models.BigIntegerField(default=1)),
                ("pending", models.PositiveSmallIntegerField(default=1)),
                (
                    "record",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="search_entry",
                        to="records.record",
                    ),
                ),
            ],
            options={
                "db_table": "search_entries",
                "indexes": [
                    models.Index(
                        condition=models.Q(("pending", 1)),
                        fields=["workspace_key", "scope", "number"],
                        name="search_pending",
                    ),
                    models.Index(fields=["session_id", "workspace_key"], name="search_session"),
                ],
            },
        ),
        migrations.RunSQL(CARDS, "DROP TABLE search_cards"),
        migrations.RunSQL(ENTRIES, migrations.RunSQL.noop),
    ]
