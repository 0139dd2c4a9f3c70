"""Real brokers on the loopback address, with a listener for each way to authenticate and Kafka's own authorizer.

ADMIN    PLAINTEXT, the super user: what an administrator does, and what brokers say to each other
TLS      SSL without a client's certificate
MTLS     SSL with one; the user is the certificate's name
PLAIN    SASL_SSL with PLAIN
SCRAM    SASL_SSL with SCRAM-SHA-256 and SCRAM-SHA-512
OAUTH    SASL_SSL with OAUTHBEARER; sessions last as long as their tokens
"""

import base64
import ssl
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # their stub forgets it
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from confluent_kafka.cimpl import NewTopic

from lab.build import bases, maven
from lab.build.cache import Cache
from lab.matrix.processes import LOOPBACK, Process, free_ports, started
from lab.settings import Settings
from tests.brokers.certificates import Authority, Issued
from tests.brokers.token_server import AUDIENCE, TokenServer

LISTENERS = ("ADMIN", "TLS", "MTLS", "PLAIN", "SCRAM", "OAUTH")
PROTOCOLS = {"ADMIN": "PLAINTEXT", "TLS": "SSL", "MTLS": "SSL"}
USER, PASSWORD = "operator", 's3cret, with "signs" and \\'
ANSWER_SECONDS = 20.0
START_SECONDS = 90.0
RETENTION = {"delete.retention.ms": "86400000"}

_COMMON = """process.roles=broker,controller
inter.broker.listener.name=ADMIN
controller.listener.names=CONTROLLER
num.partitions=2
offsets.topic.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=1000
num.network.threads=1
auto.create.topics.enable=false
log.cleaner.dedupe.buffer.size=4194304
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS
connections.max.reauth.ms=3600000
ssl.endpoint.identification.algorithm=
ssl.principal.mapping.rules=RULE:^CN=(.*?)$/$1/
sasl.enabled.mechanisms=
"""
_BEARER = "org.apache.kafka.common.security.oauthbearer"


@dataclass
class Broker:
    """One broker."""

    number: int
    ports: dict[str, int]
    process: Process
    folder: Path

    def at(self, listener: str) -> str:
        """Where clients connect."""
        return f"{LOOPBACK}:{self.ports[listener]}"


@dataclass
class Cluster:
    """Brokers that answer, and what an administrator does with them."""

    brokers: list[Broker]
    authority: Authority
    """Of the brokers' certificates."""
    clients: Authority
    """Of the clients'."""
    tokens: TokenServer
    admin: AdminClient = field(init=False)

    def __post_init__(self) -> None:
        """Connect with the first question."""
        self.admin = AdminClient({"bootstrap.servers": self.at("ADMIN"), "log_level": 0})

    def at(self, listener: str) -> str:
        """Give the bootstrap servers of a listener."""
        return ",".join(broker.at(listener) for broker in self.brokers)

    def create(self, *topics: str) -> None:
        """Make topics with six partitions, with a copy on each broker."""
        wanted = [NewTopic(topic, 6, len(self.brokers), config=RETENTION) for topic in topics]
        for answer in self.admin.create_topics(wanted).values():
            answer.result(ANSWER_SECONDS)

    def fill(self, topic: str) -> None:
        """Write a record to each partition."""
        producer = Producer({"bootstrap.servers": self.at("ADMIN"), "log_level": 0})
        for partition in range(6):
            producer.produce(topic, b"value", key=b"key", partition=partition)
        assert producer.flush(ANSWER_SECONDS) == 0

    def set_password(self, user: str, password: str) -> None:
        """Make a user of SCRAM, or give him another password."""
        for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
            wanted = UserScramCredentialUpsertion(user, ScramCredentialInfo(mechanism, 4096), password.encode())
            for answer in self.admin.alter_user_scram_credentials([wanted]).values():
                answer.result(ANSWER_SECONDS)

    def allow(self, user: str, *rights: "Right") -> None:
        """Add these ACLs."""
        for answer in self.admin.create_acls([right.binding(user) for right in rights]).values():
            answer.result(ANSWER_SECONDS)

    def take(self, user: str, *rights: "Right") -> None:
        """Remove these ACLs."""
        for answer in self.admin.delete_acls([right.filter(user) for right in rights]).values():
            answer.result(ANSWER_SECONDS)

    def use_certificate(self, issued: Issued, *listeners: str) -> None:
        """Have the brokers load another certificate for these listeners, without a restart."""
        for broker in self.brokers:
            resource = ConfigResource(ConfigResource.Type.BROKER, str(broker.number))
            for listener in listeners:
                path = broker.folder / f"{listener}-{uuid.uuid4().hex}.pem"
                path.write_text(issued.key + issued.chain)
                name = f"listener.name.{listener.lower()}.ssl.keystore.location"
                resource.add_incremental_config(
                    ConfigEntry(name, str(path), incremental_operation=AlterConfigOpType.SET)
                )
            for answer in self.admin.incremental_alter_configs([resource]).values():
                answer.result(ANSWER_SECONDS)
            until = time.monotonic() + ANSWER_SECONDS
            while any(_served(broker, listener) != issued.chain for listener in listeners):
                assert time.monotonic() < until, "the broker shows another certificate"
                time.sleep(0.05)


@dataclass(frozen=True)
class Right:
    """One ACL."""

    operation: str
    kind: str
    name: str
    prefixed: bool = False

    def binding(self, user: str) -> AclBinding:
        """Give it as Kafka's."""
        return AclBinding(*self._fields(user))

    def filter(self, user: str) -> AclBindingFilter:
        """Give what finds exactly it."""
        return AclBindingFilter(*self._fields(user))

    def _fields(
        self, user: str
    ) -> tuple[ResourceType, str, ResourcePatternType, str, str, AclOperation, AclPermissionType]:
        return (
            ResourceType[self.kind.upper()],
            self.name,
            ResourcePatternType.PREFIXED if self.prefixed else ResourcePatternType.LITERAL,
            f"User:{user}",
            "*",
            AclOperation[self.operation.upper()],
            AclPermissionType.ALLOW,
        )


@dataclass(frozen=True)
class Issuer:
    """Whose tokens brokers accept, and which."""

    keys_url: str
    audiences: tuple[str, ...] = (AUDIENCE,)
    name: str | None = None
    """The claim `iss`; None for any."""
    certificates: str | None = None
    """To trust where the keys are, PEM text."""

    def configuration(self, place: Path) -> Iterator[str]:
        """Give the lines of a broker's configuration; writes the certificates into its folder."""
        options = ""
        if self.certificates is not None:
            (place / "issuer.pem").write_text(self.certificates)
            options = f' ssl.truststore.type="PEM" ssl.truststore.location="{place / "issuer.pem"}"'
            # With any option Kafka also logs the broker in, as a client that connects to nothing here.
            options += ' unsecuredLoginStringClaim_sub="broker"'
        own = "listener.name.oauth.oauthbearer.sasl"
        yield f"{own}.jaas.config={_BEARER}.OAuthBearerLoginModule required{options};"
        yield f"{own}.server.callback.handler.class={_BEARER}.OAuthBearerValidatorCallbackHandler"
        yield f"{own}.oauthbearer.jwks.endpoint.url={self.keys_url}"
        yield f"{own}.oauthbearer.expected.audience={','.join(self.audiences)}"
        # Clocks of one machine: what has ended is refused at once.
        yield f"{own}.oauthbearer.clock.skew.seconds=0"
        if self.name is not None:
            yield f"{own}.oauthbearer.expected.issuer={self.name}"


@contextmanager
def running(folder: Path, count: int = 1, issuer: Issuer | None = None) -> Iterator[Cluster]:
    """Start a cluster with these many brokers; it answers when the block begins, and ends with it.

    Without an issuer the brokers accept the tokens of the cluster's own server.
    """
    settings = Settings.from_environment()
    cache = Cache(settings.cache)
    jars, java = maven.broker_jars(settings.versions, cache), bases.java_runtime(settings.versions, cache)
    authority, clients, tokens = Authority("brokers"), Authority("clients"), TokenServer()
    identity = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    with ExitStack() as stack:
        stack.enter_context(tokens.running())
        issuer = issuer or Issuer(tokens.keys_url)
        ports = free_ports(count * (len(LISTENERS) + 1))
        sets = [ports[number * 7 : (number + 1) * 7] for number in range(count)]
        voters = ",".join(f"{number}@{LOOPBACK}:{each[-1]}" for number, each in enumerate(sets, start=1))
        brokers = []
        for number, each in enumerate(sets, start=1):
            place = folder / str(number)
            place.mkdir()
            listeners = dict(zip(LISTENERS, each, strict=False))
            _configure(place, number, listeners, each[-1], voters, (authority, clients, issuer), count)
            run = [str(java / "bin" / "java"), "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx384m"]
            run += ["-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", f"{jars}/*"]
            run += [f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={issuer.keys_url}"]
            _format(run, place, identity)
            process = stack.enter_context(
                started(f"broker {number}", [*run, "kafka.Kafka", "server.properties"], {}, place / "log", place)
            )
            brokers.append(Broker(number, listeners, process, place))
        cluster = Cluster(brokers, authority, clients, tokens)
        _wait(cluster)
        yield cluster


def _configure(
    place: Path,
    number: int,
    listeners: dict[str, int],
    controller: int,
    voters: str,
    identities: tuple[Authority, Authority, Issuer],
    count: int,
) -> None:
    authority, clients, issuer = identities
    issued = authority.issue("broker")
    (place / "broker.pem").write_text(issued.key + issued.chain)
    (place / "clients.pem").write_text(clients.pem)
    addresses = [f"{name}://{LOOPBACK}:{port}" for name, port in listeners.items()]
    protocols = [f"{name}:{PROTOCOLS.get(name, 'SASL_SSL')}" for name in listeners]
    lines = [
        f"node.id={number}",
        f"listeners={','.join([*addresses, f'CONTROLLER://{LOOPBACK}:{controller}'])}",
        f"advertised.listeners={','.join(addresses)}",
        f"listener.security.protocol.map={','.join([*protocols, 'CONTROLLER:PLAINTEXT'])}",
        f"controller.quorum.voters={voters}",
        f"log.dirs={place / 'data'}",
        f"offsets.topic.replication.factor={count}",
        f"transaction.state.log.replication.factor={count}",
        f"default.replication.factor={count}",
        "ssl.keystore.type=PEM",
        "ssl.truststore.type=PEM",
        *(
            f"listener.name.{name.lower()}.ssl.keystore.location={place / 'broker.pem'}"
            for name in listeners
            if name != "ADMIN"
        ),
        *_authentication(place, issuer),
    ]
    (place / "server.properties").write_text(_COMMON + "\n".join(lines) + "\n")


def _authentication(place: Path, issuer: Issuer) -> list[str]:
    """How each listener knows its users."""
    escaped = PASSWORD.replace("\\", "\\\\").replace('"', '\\"').replace("\\", "\\\\")
    return [
        "listener.name.mtls.ssl.client.auth=required",
        f"listener.name.mtls.ssl.truststore.location={place / 'clients.pem'}",
        "listener.name.plain.sasl.enabled.mechanisms=PLAIN",
        "listener.name.plain.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required "
        f'user_{USER}="{escaped}";',
        "listener.name.scram.sasl.enabled.mechanisms=SCRAM-SHA-256,SCRAM-SHA-512",
        *(
            f"listener.name.scram.scram-sha-{bits}.sasl.jaas.config="
            "org.apache.kafka.common.security.scram.ScramLoginModule required;"
            for bits in (256, 512)
        ),
        "listener.name.oauth.sasl.enabled.mechanisms=OAUTHBEARER",
        *issuer.configuration(place),
    ]


def _format(run: Sequence[str], place: Path, identity: str) -> None:
    command = [*run, "kafka.tools.StorageTool", "format", f"--cluster-id={identity}", "-c", "server.properties"]
    with started("formatting", command, {}, place / "format.log", place) as formatting:
        assert formatting.wait(START_SECONDS) == 0, formatting.last_words()


def _served(broker: Broker, listener: str) -> str:
    return ssl.get_server_certificate((LOOPBACK, broker.ports[listener]))


def _wait(cluster: Cluster) -> None:
    until = time.monotonic() + START_SECONDS
    while True:
        for broker in cluster.brokers:
            broker.process.require_life()
        try:
            if len(cluster.admin.list_topics(timeout=2).brokers) == len(cluster.brokers):
                return
        except KafkaException:
            pass
        assert time.monotonic() < until, cluster.brokers[0].process.last_words()
        time.sleep(0.2)
