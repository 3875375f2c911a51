"""Flower's grid in one process, with the apps themselves behind it."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any
from uuid import uuid4

from flwr.app import Context, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.proto.node_pb2 import NodeInfo
from flwr.serverapp import Grid


class TownGrid(Grid):
    """Nodes with a name and a configuration each, all of one app; `forge` may change what they reply."""

    def __init__(self, app: ClientApp, nodes: Mapping[str, Mapping[str, Any]]):
        self.app, self.nodes = app, {number: (name, nodes[name]) for number, name in enumerate(nodes, 11)}
        self.forge: Callable[[str, Message, Message], Message] = lambda _, __, reply: reply
        self.replies: dict[str, Message] = {}

    def set_run(self, run: Any) -> None:
        raise NotImplementedError

    @property
    def run(self) -> Any:
        raise NotImplementedError

    def create_message(self, *words: Any, **more: Any) -> Message:
        raise NotImplementedError

    def send_and_receive(self, *words: Any, **more: Any) -> Any:
        raise NotImplementedError

    def get_node_ids(self) -> Iterable[int]:
        return list(self.nodes)

    def get_nodes(self) -> Iterable[Any]:
        return [NodeInfo(node_id=number, name=name) for number, (name, _) in self.nodes.items()]

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        sent = []
        for message in messages:
            message.metadata.__dict__["_message_id"] = str(uuid4())
            node = message.metadata.dst_node_id
            name, config = self.nodes[node]
            context = Context(1, node, dict(config), RecordDict(), {})
            self.replies[message.metadata.message_id] = self.forge(name, message, self.app(message, context))
            sent.append(message.metadata.message_id)
        return sent

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        return [self.replies.pop(number) for number in message_ids if number in self.replies]
