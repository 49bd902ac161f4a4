"""Broker discovery: `/brokers`, `/v2/brokers`, `/instances`, `/tenants` and `/databases` in Pinot's formats.

Clients that connect to the controller (`fromController` in Java and Go, `jdbc:pinot://host:port`, Trino) use them.
One server is controller, broker and server at once. Responses contain the address that the client used, so they
are also right behind a proxy or a forwarded port.
Source: PinotBrokerRestletResource, PinotInstanceRestletResource and PinotTableInstances of Apache Pinot.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

from fastapi import Path, Query, Request

from hybrid.config.table_config import Half
from hybrid.errors import NotFoundError
from hybrid.serve.bodies import StrictRouter
from hybrid.serve.context import context_of
from hybrid.serve.openapi import shown
from hybrid.serve.path_parameters import HalfType, TableName, listed_halves, path_table

router = StrictRouter(tags=["brokers"])
TENANT = "DefaultTenant"
DATABASE = "default"
_BROKER = {"port": 9000, "host": "127.0.0.1", "instanceName": "Broker_127.0.0.1_9000"}
_ROLES = ("Broker", "Controller", "Server")
_TAGS = {"Broker": [f"{TENANT}_BROKER"], "Controller": ["controller"], "Server": [f"{TENANT}_{half}" for half in Half]}

TenantName = Annotated[str, Path(description="There is one: DefaultTenant", examples=[TENANT])]
InstanceName = Annotated[str, Path(examples=["Broker_127.0.0.1_9000"])]
State = Annotated[str | None, Query(description="ONLINE, or OFFLINE, which no broker here is", examples=["ONLINE"])]


class BrokerAddress(NamedTuple):
    """Where a request reached this server."""

    host: str
    port: int

    def name(self, role: str) -> str:
        """Return the name of the instance in this role, as Pinot composes it."""
        return f"{role}_{self.host}_{self.port}"

    def broker(self) -> dict[str, Any]:
        """Return the broker in the format of `/v2/brokers`."""
        return {"port": self.port, "host": self.host, "instanceName": self.name("Broker")}


def address_of(request: Request) -> BrokerAddress:
    """Return the host and port through which the client reached this server."""
    url = request.url
    return BrokerAddress(url.hostname or "127.0.0.1", url.port or (443 if url.scheme == "https" else 80))


@router.get("/v2/brokers", summary="List the brokers of tenants and tables", responses=shown({"tenants": {}}))
def list_brokers_v2(request: Request, state: State = None) -> Any:
    """Returns `{"tenants": {...}, "tables": {...}}`, each broker with host and port."""
    return {"tenants": list_tenant_brokers_v2(request, state), "tables": list_table_brokers_v2(request, state)}


@router.get("/v2/brokers/tenants", summary="List the brokers by tenant", responses=shown({TENANT: [_BROKER]}))
def list_tenant_brokers_v2(request: Request, state: State = None) -> Any:
    """Returns the brokers of the only tenant, DefaultTenant."""
    return {TENANT: _brokers(request, state)}


@router.get("/v2/brokers/tenants/{tenant}", summary="List the brokers of a tenant", responses=shown([_BROKER]))
def tenant_brokers_v2(request: Request, tenant: TenantName, state: State = None) -> Any:
    """Returns the brokers of a tenant; the first request of the JDBC driver. 404 unless it is DefaultTenant."""
    _tenant(tenant)
    return _brokers(request, state)


@router.get("/v2/brokers/tables", summary="List the brokers by table", responses=shown({"orders": [_BROKER]}))
def list_table_brokers_v2(request: Request, state: State = None) -> Any:
    """Returns the brokers of every table; `fromController` of the Java, Go and Ruby clients polls it."""
    return dict.fromkeys(context_of(request).home.context.listed_names(), _brokers(request, state))


@router.get("/v2/brokers/tables/{table}", summary="List the brokers of a table", responses=shown([_BROKER]))
def table_brokers_v2(request: Request, table: TableName, type_: HalfType = None, state: State = None) -> Any:
    """Returns the brokers of a table; 404 if it does not exist."""
    listed_halves(context_of(request), table, type_)
    return _brokers(request, state)


@router.get("/brokers", summary="List the brokers of tenants and tables by name", responses=shown({"tenants": {}}))
def list_brokers(request: Request, state: State = None) -> Any:
    """Returns what `/v2/brokers` returns, with instance names only."""
    return {"tenants": list_tenant_brokers(request, state), "tables": list_table_brokers(request, state)}


@router.get("/brokers/tenants", summary="List the names of brokers by tenant", responses=shown({TENANT: []}))
def list_tenant_brokers(request: Request, state: State = None) -> Any:
    """Returns the names of the brokers of the only tenant, DefaultTenant."""
    return {TENANT: _names(request, state)}


@router.get("/brokers/tenants/{tenant}", summary="List the names of a tenant's brokers", responses=shown([]))
def tenant_brokers(request: Request, tenant: TenantName, state: State = None) -> Any:
    """Returns the names of a tenant's brokers; 404 unless it is DefaultTenant."""
    _tenant(tenant)
    return _names(request, state)


@router.get("/brokers/tables", summary="List the names of brokers by table", responses=shown({"orders": []}))
def list_table_brokers(request: Request, state: State = None) -> Any:
    """Returns the names of brokers by table, without suffix."""
    return dict.fromkeys(context_of(request).home.context.listed_names(), _names(request, state))


@router.get("/brokers/tables/{table}", summary="List the names of a table's brokers", responses=shown([]))
def table_brokers(request: Request, table: TableName, type_: HalfType = None, state: State = None) -> Any:
    """Returns the names of a table's brokers; 404 if it does not exist."""
    listed_halves(context_of(request), table, type_)
    return _names(request, state)


@router.get("/instances", summary="List the instances", responses=shown({"instances": [_BROKER["instanceName"]]}))
def list_instances(request: Request) -> Any:
    """Returns this server once for each of its roles."""
    return {"instances": [address_of(request).name(role) for role in _ROLES]}


@router.get("/instances/{instance}", summary="Show an instance", responses=shown({"instanceName": "Broker_..."}))
def show_instance(request: Request, instance: InstanceName) -> Any:
    """Returns name, address and tags of an instance."""
    address = address_of(request)
    roles = {address.name(role): role for role in _ROLES}
    if instance not in roles:
        raise NotFoundError.named("Instance", instance[:100], roles)
    return {
        "instanceName": instance,
        "hostName": address.host,
        "enabled": True,
        "port": str(address.port),
        "tags": _TAGS[roles[instance]],
        "pools": None,
        "grpcPort": -1,
        "adminPort": address.port,
        "queryServicePort": -1,
        "queryMailboxPort": -1,
        "systemResourceInfo": None,
    }


@router.get("/tables/livebrokers", summary="List the live brokers by half", responses=shown({"orders_OFFLINE": []}))
def list_live_brokers(
    request: Request, tables: Annotated[list[str] | None, Query(description="Only these tables; all without it")] = None
) -> Any:
    """Returns brokers by table name with suffix; the first request of the Java client's `fromController`."""
    context = context_of(request)
    chosen = [listed_halves(context, name) for name in tables or context.home.context.listed_names()]
    return {f"{name}_{half}": [address_of(request).broker()] for name, halves in chosen for half in halves}


@router.get("/tables/{table}/livebrokers", summary="List the live brokers of a table", responses=shown([]))
def live_brokers(request: Request, table: TableName) -> Any:
    """Returns the instance names of a table's brokers."""
    return table_brokers(request, table)


@router.get("/tables/{table}/instances", summary="List the instances of a table", responses=shown({"brokers": []}))
def table_instances(request: Request, table: TableName, type_: HalfType = None) -> Any:
    """Returns the instances of a table by half; Trino and Presto find brokers with it."""
    (name, halves), address = listed_halves(context_of(request), table, type_), address_of(request)

    def of(role: str) -> list[dict[str, Any]]:
        return [{"tableType": half.value, "instances": [address.name(role)]} for half in halves]

    return {"tableName": name, "brokers": of("Broker"), "server": of("Server")}


@router.get("/debug/routingTable/{table}", summary="Show which server answers for a segment", responses=shown({}))
def routing_table(request: Request, table: TableName) -> Any:
    """Returns segments by half and server. They can be read through `/query/sql` only, not directly by a port."""
    found, server = path_table(context_of(request), table), address_of(request).name("Server")
    segments = found.segments()
    return {
        f"{found.table.name}_{half}": {server: sorted(one.name for one in segments if one.half == half)}
        for half in found.halves
    }


@router.get("/tenants", summary="List the tenants", responses=shown({"SERVER_TENANTS": [TENANT]}))
def list_tenants() -> Any:
    """Returns the only tenant, DefaultTenant."""
    return {"SERVER_TENANTS": [TENANT], "BROKER_TENANTS": [TENANT]}


@router.get("/databases", summary="List the databases", responses=shown([DATABASE]))
def list_databases() -> list[str]:
    """Returns the only database; a table name may be qualified with it: `default.orders`."""
    return [DATABASE]


# Each server answers them for each table of the warehouse: it passes statements on.
OF_ANY_TABLE = frozenset({table_brokers_v2, table_brokers, live_brokers, table_instances})


def _brokers(request: Request, state: str | None) -> list[dict[str, Any]]:
    return [address_of(request).broker()] if _is_wanted(state) else []


def _names(request: Request, state: str | None) -> list[str]:
    return [address_of(request).name("Broker")] if _is_wanted(state) else []


def _is_wanted(state: str | None) -> bool:
    return state is None or state.upper() != "OFFLINE"


def _tenant(name: str) -> None:
    if name != TENANT:
        raise NotFoundError.named("Tenant", name[:100], [TENANT])
