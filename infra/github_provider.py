"""GitHub as an identity provider of the account: workflows get a role's credentials for one run, and GitHub stores no secret."""

from __future__ import annotations

from infra.tf import Construct, IamOpenidConnectProvider

ISSUER = "https://token.actions.githubusercontent.com"
AUDIENCE = "sts.amazonaws.com"


class GithubProvider(Construct):
    """The provider of GitHub's tokens. An account has at most one."""

    def __init__(self, scope: Construct, name: str) -> None:
        super().__init__(scope, name)
        IamOpenidConnectProvider(self, "provider", url=ISSUER, client_id_list=[AUDIENCE])
