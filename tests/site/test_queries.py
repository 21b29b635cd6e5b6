import itertools

import pytest
from django.contrib.auth.models import Permission, User

from tests.queries import assert_flat_queries

numbers = itertools.count()


def make_users(count):
    for _ in range(count):
        User.objects.create(username=f"u{next(numbers)}")


@pytest.mark.django_db
def test_one_query_for_all_rows_is_flat():
    assert_flat_queries(make_users, lambda: list(User.objects.all()))


@pytest.mark.django_db
def test_a_query_per_row_is_noticed():
    def per_row():
        for user in User.objects.all():
            Permission.objects.filter(user=user).exists()

    with pytest.raises(AssertionError, match="queries for 10 rows"):
        assert_flat_queries(make_users, per_row)
