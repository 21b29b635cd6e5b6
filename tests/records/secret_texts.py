"""Secrets of no one, as people and tools leave them in a conversation. Put together from pieces, so that no
scanner of repositories takes them for real ones."""

GITHUB = "ghp_" + "Zx9Qw7Er5Ty3Ui1Op8As6Df4Gh2Jk0LmN4bV"
AWS_ID, AWS_KEY = "AKIA" + "QYLPMN5HFIQR7XYA", "zLq8Vd2+Kp5nRt7/" + "Wm3xYc6bHs9gJf4eUa1oTi0E"
OPENAI = "sk-proj-" + "Rk7mPq2vXt9zLw4cNs8bHy3dGj6fUa1e" + "T3BlbkFJ" + "Qo5iVe0rMx7kZp2wCt9yLn4sBh8g"
ANTHROPIC = "sk-ant-" + "api03-" + ("Kx8mQz2vRt7Lp4Ws9Yd3Hb6Nf1Jc5Gg0" * 3)[:93] + "AA"
TELEGRAM = "6123456789" + ":AAF8kQ2mVz9Lp4Rt6Ws8Yd3Hb6Nf1Jc5GgT"
PEM = "\n".join(
    [
        "-----BEGIN RSA " + "PRIVATE KEY-----",
        "MIIEpAIBAAKCAQEA0Z3VS5JJcds3xfn/ygWyF0qJqJq1l6kA7mDq4Y8s2Vb5n7Rw",
        "kX2mP9vQz4tLc6Hs8JfGd1aYbE3rUi0oNw5xTgKq7MpZ2eVh9CyBu6SjDl4Rf8Wn",
        "aQ1sXz3Ed5Cr7Fv9Tg2Yb4Hn6Uj8Mi0KoLpPq2Ws4Ed6Rf8Tg1Yh3Uj5Ik7Ol9P",
        "-----END RSA " + "PRIVATE KEY-----",
    ]
)

# (name, the secret, the text it stands in, whether it is found)
PLANTED: list[tuple[str, str, str, bool]] = [
    ("github", GITHUB, f"Use this to push: GITHUB_TOKEN={GITHUB}", True),
    ("github, Chinese", GITHUB, f"推送时请使用令牌 {GITHUB}，不要告诉别人", True),
    ("gitlab", "glpat-" + "x7Kq2mVz9Lp4Rt6Ws8Yd", "token: glpat-" + "x7Kq2mVz9Lp4Rt6Ws8Yd", True),
    ("aws pair", AWS_KEY, f"aws_access_key_id = {AWS_ID}\naws_secret_access_key = {AWS_KEY}", True),
    ("openai", OPENAI, f"export OPENAI_API_KEY={OPENAI}", True),
    ("anthropic", ANTHROPIC, f"ANTHROPIC_API_KEY={ANTHROPIC}", True),
    ("slack bot", "xoxb-" + "123456789012-1234567890123-" + "aBcDeFgHiJkLmNoPqRsTuVwX",
     "slack bot token xoxb-" + "123456789012-1234567890123-" + "aBcDeFgHiJkLmNoPqRsTuVwX", True),
    ("slack hook", "T0A1B2C3D/B4E5F6G7H/" + "kQ8mVz2xRt7Lp4Ws9Yd3Hb6N",
     "curl https://hooks.slack.com/services/T0A1B2C3D/B4E5F6G7H/" + "kQ8mVz2xRt7Lp4Ws9Yd3Hb6N", True),
    ("stripe", "sk_live_" + "4eC39HqLyjWDarjtT1zdp7dcKx82", "stripe.api_key = 'sk_live_" + "4eC39HqLyjWDarjtT1zdp7dcKx82'", True),
    ("google", "AIza" + "SyD8kQ2mVz9Lp4Rt6Ws8Yd3Hb6Nf1Jc5Gg", "key=AIza" + "SyD8kQ2mVz9Lp4Rt6Ws8Yd3Hb6Nf1Jc5Gg", True),
    ("npm", "npm_" + "k8Qm2Vz9Lp4Rt6Ws1Yd3Hb7Nf5Jc0GgTaUeX", "//registry.example/:_authToken=npm_" + "k8Qm2Vz9Lp4Rt6Ws1Yd3Hb7Nf5Jc0GgTaUeX", True),
    ("pypi", "pypi-AgEIcHlwaS5vcmc" + "CJDk4ZmQ3YzA4LTJhMTctNGI2ZS05YzU1LTBkN2UxZjNhOGI2NAACKlszLCJhYmNkZWYxMi0zNDU2",
     "password = pypi-AgEIcHlwaS5vcmc" + "CJDk4ZmQ3YzA4LTJhMTctNGI2ZS05YzU1LTBkN2UxZjNhOGI2NAACKlszLCJhYmNkZWYxMi0zNDU2", True),
    ("sendgrid", "SG." + "kQ8mVz2xRt7Lp4Ws9Yd3Hb." + "N6f1Jc5Gg0TaUeVo2Xi8Pk4Mr7Zs1Bq6Dw3Cy9El5Fj",
     "SENDGRID=SG." + "kQ8mVz2xRt7Lp4Ws9Yd3Hb." + "N6f1Jc5Gg0TaUeVo2Xi8Pk4Mr7Zs1Bq6Dw3Cy9El5Fj", True),
    ("hugging face", "hf_" + "QkVzLpRtWsYdHbNfJcGgTaUeVoXiPkMrZs", "HF_TOKEN=hf_" + "QkVzLpRtWsYdHbNfJcGgTaUeVoXiPkMrZs", True),
    ("telegram", TELEGRAM, f"TELEGRAM_BOT_TOKEN={TELEGRAM}", True),
    ("private key", PEM.split("\n")[2], PEM, True),
    ("jwt", "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9." + "eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkRldiJ9." + "SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c",
     "Authorization: Bearer eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9." + "eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkRldiJ9." + "SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c", True),
    ("database address", "kT9vXq2Lm7Zr", "DATABASE_URL=postgres://app:kT9vXq2Lm7Zr@db.internal.net:5432/app", True),
    ("password in code", "Gr8-harbour-Lamp42", 'password = "Gr8-harbour-Lamp42"', True),
    ("password, Chinese context", "Gr8-harbour-Lamp42", "数据库配置如下：\npassword: Gr8-harbour-Lamp42\n请保存", True),
    ("password in a sentence", "Gr8-harbour-Lamp42", "the wifi password is Gr8-harbour-Lamp42 by the way", False),
    ("password in Chinese", "Gr8-harbour-Lamp42", "数据库的密码是 Gr8-harbour-Lamp42，别忘了", False),
    ("curl -u", "Gr8-harbour-Lamp42", "curl -u admin:Gr8-harbour-Lamp42 https://api.internal.net/v1", True),
]  # fmt: skip
