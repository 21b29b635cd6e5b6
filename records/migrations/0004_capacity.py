
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('records', '0003_listing'),
    ]

    operations = [
        migrations.CreateModel(
            name='CompressionRun',
            fields=[
                ('id', models.AutoField(primary_key=True, serialize=False)),
                ('session_id', models.CharField(blank=True, max_length=200)),
                ('workspace_keys', models.JSONField(default=list)),
                ('level', models.CharField(max_length=8)),
                ('strategy', models.CharField(max_length=16)),
                ('before_hot', models.BigIntegerField()),
                ('after_hot', models.BigIntegerField()),
                ('cold_moved', models.IntegerField(default=0)),
                ('digests', models.IntegerField(default=0)),
                ('llm_calls', models.IntegerField(default=0)),
                ('errors', models.TextField(blank=True)),
                ('created_at', models.BigIntegerField()),
                ('duration_ms', models.BigIntegerField(null=True)),
                ('actor', models.CharField(max_length=200)),
            ],
            options={
                'db_table': 'compression_runs',
            },
        ),
        migrations.AddIndex(
            model_name='compressionrun',
            index=models.Index(fields=['session_id'], name='compression_runs_session'),
        ),
    ]
