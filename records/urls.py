from django.urls import path

from . import views

app_name = "records"
urlpatterns = [
    path("<str:record_id>/", views.record_detail, name="detail"),
    path("<str:record_id>/edit", views.record_edit, name="edit"),
]
