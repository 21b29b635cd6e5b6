from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('records', '0002_search'),
    ]

    operations = [
        migrations.RemoveIndex(
            model_name='record',
            name='records_ws_index',
        ),
        migrations.RemoveIndex(
            model_name='record',
            name='records_scope_index',
        ),
        migrations.AddIndex(
            model_name='pooltotal',
            index=models.Index(fields=['session_id'], name='pool_totals_session'),
        ),
        migrations.AddIndex(
            model_name='pooltotal',
            index=models.Index(fields=['kind', 'status', 'cold', 'count', 'tokens', 'bytes'], name='pool_totals_sums'),
        ),
        migrations.AddIndex(
            model_name='record',
            index=models.Index(condition=models.Q(models.Q(('status', 'superseded'), _negated=True), models.Q(('status', 'suggested'), _negated=True), models.Q(('status', 'trashed'), _negated=True)), fields=['workspace_key', 'scope', 'updated_at', 'id'], name='records_pool_updated'),
        ),
        migrations.AddIndex(
            model_name='record',
            index=models.Index(condition=models.Q(models.Q(('status', 'superseded'), _negated=True), models.Q(('status', 'suggested'), _negated=True), models.Q(('status', 'trashed'), _negated=True)), fields=['workspace_key', 'scope', 'kind', 'updated_at', 'id'], name='records_pool_kind'),
        ),
        migrations.AddIndex(
            model_name='record',
            index=models.Index(fields=['workspace_key', 'scope', 'created_at'], name='records_pool_created'),
        ),
        migrations.AddIndex(
            model_name='record',
            index=models.Index(fields=['session_id', 'updated_at', 'id'], name='records_session'),
        ),
        migrations.AddIndex(
            model_name='record',
            index=models.Index(condition=models.Q(('cold', 0), models.Q(('status', 'active'), ('status', 'pinned'), _connector='OR')), fields=['workspace_key', 'scope', 'updated_at', 'id'], name='records_hot'),
        ),
        migrations.AddIndex(
            model_name='record',
            index=models.Index(condition=models.Q(('status', 'pinned')), fields=['workspace_key', 'scope', 'cold', 'updated_at', 'id'], name='records_pool_pinned'),
        ),
        migrations.AddIndex(
            model_name='record',
            index=models.Index(condition=models.Q(('status', 'pinned')), fields=['cold', 'updated_at', 'id'], name='records_pinned'),
        ),
        migrations.AddIndex(
            model_name='record',
            index=models.Index(condition=models.Q(('cold', 0), models.Q(('status', 'active'), ('status', 'pinned'), _connector='OR'), ('kind', 'open-thread')), fields=['workspace_key', 'scope', 'kind', 'updated_at', 'id'], name='records_pool_threads'),
        ),
        migrations.AddIndex(
            model_name='record',
            index=models.Index(condition=models.Q(('cold', 0), models.Q(('status', 'active'), ('status', 'pinned'), _connector='OR'), ('kind', 'open-thread')), fields=['kind', 'updated_at', 'id'], name='records_threads'),
        ),
    ]
