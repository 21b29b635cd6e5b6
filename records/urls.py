from django.urls import path

from . import views

app_name = "records"
urlpatterns = [
    path("<str:record_id>/", views.record_detail, name="detail"),
    path("<str:record_id>/pin", views.record_pin, name="pin"),
]
