
import records.models
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('records', '0004_capacity'),
    ]

    operations = [
        migrations.AddIndex(
            model_name='record',
            index=models.Index(models.F('workspace_key'), models.F('scope'), records.models.TextHash(), condition=models.Q(('trust', 'derived'), _negated=True), name='records_text_hash'),
        ),
        migrations.AddIndex(
            model_name='record',
            index=models.Index(condition=models.Q(('slot', ''), _negated=True), fields=['workspace_key', 'scope', 'slot'], name='records_slot'),
        ),
    ]
