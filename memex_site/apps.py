from django.apps import AppConfig


class MemexSiteConfig(AppConfig):
    name = "memex_site"
    verbose_name = "Memex"

    def ready(self) -> None:
        from . import checks  # noqa: F401  # importing registers them
